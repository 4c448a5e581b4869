//===- FitRanges.cpp - Ranges of equal pieces that move least -------------===//
///
/// \file
/// The cost of a shard does not depend on which columns or rows it has, so
/// searches leave that open. Here the shards of a band are put in the order in
/// which their devices held the table before.
//===----------------------------------------------------------------------===//

#include "FitRanges.h"

#include "Migration.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace neuroshard;

namespace {

/// Bands of more shards than this are left as they are.
constexpr size_t kMaxPieces = 64;

enum class Axis { Rows, Columns };

int64_t beginOf(const Shard &shard, Axis axis) {
  return axis == Axis::Rows ? shard.rowBegin : shard.colBegin;
}

int64_t sizeOf(const Shard &shard, Axis axis) {
  return axis == Axis::Rows ? shard.rows() : shard.width();
}

void moveTo(Shard &shard, Axis axis, int64_t begin) {
  int64_t size = sizeOf(shard, axis);
  (axis == Axis::Rows ? shard.rowBegin : shard.colBegin) = begin;
  (axis == Axis::Rows ? shard.rowEnd : shard.colEnd) = begin + size;
}

/// Shards that lie side by side along one axis and have equal ranges along the
/// other.
class Band {
public:
  Band(std::vector<Shard *> pieces, const std::vector<const Shard *> &before,
       Axis axis)
      : pieces(std::move(pieces)), before(before), axis(axis) {}

  void fit();

private:
  double keptBy(const std::vector<Shard *> &order) const;
  int64_t homeOf(const Shard &piece) const;
  void layOut(const std::vector<Shard *> &order) const;

  std::vector<Shard *> pieces;
  const std::vector<const Shard *> &before;
  const Axis axis;
};

/// The first row or column of the table that the shard's device held before;
/// the largest number if it held none.
int64_t Band::homeOf(const Shard &piece) const {
  int64_t home = std::numeric_limits<int64_t>::max();
  for (const Shard *old : before)
    if (old->devices.front() == piece.devices.front())
      home = std::min(home, beginOf(*old, axis));
  return home;
}

void Band::layOut(const std::vector<Shard *> &order) const {
  int64_t place = std::numeric_limits<int64_t>::max();
  for (const Shard *piece : order)
    place = std::min(place, beginOf(*piece, axis));
  for (Shard *piece : order) {
    moveTo(*piece, axis, place);
    place += sizeOf(*piece, axis);
  }
}

/// The elements that stay on their device if the shards lie in this order.
double Band::keptBy(const std::vector<Shard *> &order) const {
  int64_t place = std::numeric_limits<int64_t>::max();
  for (const Shard *piece : order)
    place = std::min(place, beginOf(*piece, axis));
  double kept = 0;
  for (const Shard *piece : order) {
    Shard laid = *piece;
    moveTo(laid, axis, place);
    place += sizeOf(laid, axis);
    for (const Shard *old : before) {
      if (old->devices.front() != laid.devices.front())
        continue;
      Overlap shared = overlapOf(laid, *old);
      kept += static_cast<double>(shared.rows) *
              static_cast<double>(shared.columns);
    }
  }
  return kept;
}

void Band::fit() {
  // Only the last shard may have a width that is no multiple of 4.
  size_t movable = pieces.size();
  if (axis == Axis::Columns && pieces.back()->width() % kColumnAlignment != 0)
    --movable;
  std::vector<Shard *> order(
      pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(movable));
  std::vector<Shard *> rest(
      pieces.begin() + static_cast<std::ptrdiff_t>(movable), pieces.end());
  auto homeless = std::stable_partition(
      order.begin(), order.end(), [&](const Shard *piece) {
        return homeOf(*piece) != std::numeric_limits<int64_t>::max();
      });
  std::vector<Shard *> guests(homeless, order.end());
  order.erase(homeless, order.end());
  std::stable_sort(
      order.begin(), order.end(),
      [&](const Shard *a, const Shard *b) { return homeOf(*a) < homeOf(*b); });
  auto all = [&](std::vector<Shard *> some) {
    some.insert(some.end(), rest.begin(), rest.end());
    return some;
  };
  // Put a shard whose device is new where the others keep most elements.
  for (size_t g = 0; g < guests.size(); ++g) {
    std::vector<Shard *> best;
    double most = -1;
    for (size_t at = 0; at <= order.size(); ++at) {
      std::vector<Shard *> tried = order;
      tried.insert(tried.begin() + static_cast<std::ptrdiff_t>(at), guests[g]);
      std::vector<Shard *> whole = tried;
      whole.insert(whole.end(),
                   guests.begin() + static_cast<std::ptrdiff_t>(g + 1),
                   guests.end());
      double kept = keptBy(all(whole));
      if (kept > most) {
        most = kept;
        best = std::move(tried);
      }
    }
    order = std::move(best);
  }
  order = all(order);
  if (keptBy(order) > keptBy(pieces))
    layOut(order);
}

bool hasReplica(const std::vector<const Shard *> &shards) {
  return std::any_of(shards.begin(), shards.end(),
                     [](const Shard *shard) { return shard->hasCopies(); });
}

/// The shards of a table as bands of columns, or its row shards as one band;
/// nothing for other cuts.
std::vector<std::vector<Shard *>> bandsOf(std::vector<Shard *> shards,
                                          Axis &axis) {
  std::sort(shards.begin(), shards.end(), [](const Shard *a, const Shard *b) {
    return std::pair(a->rowBegin, a->colBegin) <
           std::pair(b->rowBegin, b->colBegin);
  });
  std::vector<std::vector<Shard *>> bands;
  for (Shard *shard : shards) {
    bool same = !bands.empty() &&
                bands.back().front()->rowBegin == shard->rowBegin &&
                bands.back().front()->rowEnd == shard->rowEnd;
    if (!same)
      bands.emplace_back();
    bands.back().push_back(shard);
  }
  // Every band must reach from the first column to the last.
  for (const std::vector<Shard *> &band : bands) {
    int64_t column = 0;
    for (const Shard *shard : band) {
      if (shard->colBegin != column)
        return {};
      column = shard->colEnd;
    }
  }
  axis = bands.size() == shards.size() ? Axis::Rows : Axis::Columns;
  return axis == Axis::Rows ? std::vector<std::vector<Shard *>>{shards} : bands;
}

} // namespace

void neuroshard::fitRanges(const ShardingProblem &problem,
                           const ShardingPlan &previous, ShardingPlan &plan) {
  if (problem.target != Target::Native)
    return;
  ShardsOfTable before = shardsByTable(previous);
  std::map<std::string_view, std::vector<Shard *>> now;
  for (Shard &shard : plan.shards)
    now[shard.table].push_back(&shard);
  for (const Shard &shard : problem.constraints.fixedShards)
    now.erase(shard.table);
  for (auto &[table, shards] : now) {
    auto old = before.find(table);
    std::vector<const Shard *> constant(shards.begin(), shards.end());
    if (old == before.end() || shards.size() < 2 ||
        shards.size() > kMaxPieces || hasReplica(old->second) ||
        hasReplica(constant))
      continue;
    Axis axis = Axis::Rows;
    for (std::vector<Shard *> &band : bandsOf(shards, axis))
      Band(std::move(band), old->second, axis).fit();
  }
}
