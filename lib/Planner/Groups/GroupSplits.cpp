//===- GroupSplits.cpp - Parts of tables split evenly over groups ---------===//
///
/// \file
/// A part is split into r ranges of rows times c of columns, r c = devices of a
/// group. By rows, each device reads its share of the ids, but sends a relay
/// whole rows of partial sums; by columns it reads all ids. So parts with many
/// ids per result are better split by rows. All pairs of splits for those above
/// and below some number of ids are tried, and then each part by itself.
//===----------------------------------------------------------------------===//

#include "GroupSplits.h"

#include "Cost/RelayLoads.h"
#include "Placement/Greedy.h"
#include "Units/UnitOperations.h"

#include <algorithm>
#include <functional>
#include <numeric>

using namespace neuroshard;

namespace {

/// Numbers of ids per result that are tried as a border.
constexpr size_t kBorders = 6;
/// Parts x devices for which each part is also tried by itself.
constexpr size_t kSingleWork = 65536;

class Splitter {
public:
  Splitter(const SearchContext &context, int groupSize, int64_t &evaluations)
      : context(context), groupSize(groupSize), evaluations(evaluations) {
    for (int rows = 1; rows <= groupSize; ++rows)
      if (groupSize % rows == 0)
        rowCounts.push_back(rows);
  }

  std::optional<ShardingPlan> run(const ShardingPlan &placed,
                                  std::span<const Shard> all) {
    base = placed;
    baseMs.resize(static_cast<size_t>(context.deviceCount));
    for (const Shard &shard : base.shards)
      if (!shard.hasCopies())
        baseMs[static_cast<size_t>(shard.devices.front())] +=
            freeUnit(shard)->aloneMs();
    for (const Shard &shard : all)
      addPart(shard);
    if (std::ranges::any_of(
            parts, [](const Part &part) { return part.devices.empty(); }))
      return std::nullopt;
    std::ranges::stable_sort(parts, std::greater(), &Part::idsPerResult);
    tryBorders();
    if (parts.size() * static_cast<size_t>(context.deviceCount) <= kSingleWork)
      trySingly();
    return planOf(best);
  }

private:
  /// One number for each part, that of its split.
  using Choice = std::vector<size_t>;

  struct Part {
    /// Those of its group that may hold it.
    std::vector<int> devices;
    double idsPerResult;
    /// By number of row ranges.
    std::vector<std::vector<UnitPtr>> splits;
  };

  UnitPtr freeUnit(Shard shard) const {
    shard.devices.clear();
    shard.name.clear();
    return makeUnit(context, {std::move(shard)});
  }

  void addPart(const Shard &shard) {
    UnitPtr whole = freeUnit(shard);
    const ShardWork &work = whole->works.front();
    Part part{{}, work.lookups / std::max(1.0, work.outputRows), {}};
    const TableRules &rules = context.rulesOf(context.tableIndex(shard.table));
    int first = shard.devices.front() * groupSize;
    for (int device = first; device < first + groupSize; ++device)
      if (rules.allowsDevice(device))
        part.devices.push_back(device);
    int most = std::max(1, static_cast<int>(part.devices.size()));
    for (int rows : rowCounts)
      part.splits.push_back(
          split(whole, std::min(rows, most), std::max(1, most / rows)));
    parts.push_back(std::move(part));
  }

  std::vector<UnitPtr> split(const UnitPtr &whole, int rows,
                             int columns) const {
    std::vector<UnitPtr> ranges = {whole}, pieces;
    if (rows > 1)
      if (auto cut = splitRows(context, *whole, rows))
        ranges = *std::move(cut);
    for (const UnitPtr &range : ranges) {
      std::optional<std::vector<UnitPtr>> cut;
      for (int count = columns; count > 1 && !cut; --count)
        cut = splitColumns(context, *range, count);
      if (cut)
        pieces.insert(pieces.end(), cut->begin(), cut->end());
      else
        pieces.push_back(range);
    }
    return pieces;
  }

  /// The largest pieces first, each on the device of its group with the least
  /// to compute.
  ShardingPlan planOf(const Choice &choice) const {
    ShardingPlan plan = base;
    std::vector<double> busyMs = baseMs;
    std::vector<std::pair<const Part *, UnitPtr>> pieces;
    for (size_t i = 0; i < parts.size(); ++i)
      for (const UnitPtr &unit : parts[i].splits[choice[i]])
        pieces.emplace_back(&parts[i], unit);
    std::ranges::stable_sort(pieces, std::greater(), [](const auto &piece) {
      return piece.second->aloneMs();
    });
    for (const auto &[part, unit] : pieces) {
      int device = *std::ranges::min_element(part->devices, {}, [&](int each) {
        return busyMs[static_cast<size_t>(each)];
      });
      busyMs[static_cast<size_t>(device)] += unit->aloneMs();
      Shard shard = unit->shards.front();
      shard.devices = {device};
      shard.route = Route::Relay;
      plan.shards.push_back(std::move(shard));
    }
    return plan;
  }

  /// Keeps the choice if it is the cheapest.
  void take(const Choice &choice) {
    ++evaluations;
    ShardingPlan plan = planOf(choice);
    std::vector<DeviceLoad> loads =
        planLoads(context.problem, plan, context.model);
    std::vector<RelayLoad> relays =
        relayLoads(context.problem, plan.shards, loads);
    double cost = composeCost(context.problem.topology, loads, context.model,
                              context.options.objective, relays)
                      .costMs;
    if (!best.empty() && cost >= bestMs)
      return;
    best = choice;
    bestMs = cost;
  }

  void tryBorders() {
    std::vector<size_t> borders;
    for (size_t i = 1; i < parts.size(); ++i)
      if (parts[i].idsPerResult < parts[i - 1].idsPerResult)
        borders.push_back(i);
    size_t step =
        std::max<size_t>(1, (borders.size() + kBorders - 1) / kBorders);
    for (size_t low = 0; low < rowCounts.size(); ++low)
      take(Choice(parts.size(), low));
    for (size_t low = 0; low < rowCounts.size(); ++low)
      for (size_t high = low + 1; high < rowCounts.size(); ++high)
        for (size_t b = 0; b < borders.size(); b += step) {
          if (context.deadlinePassed())
            return;
          Choice choice(parts.size(), low);
          std::fill_n(choice.begin(), borders[b], high);
          take(choice);
        }
  }

  void trySingly() {
    for (size_t i = 0; i < parts.size(); ++i)
      for (size_t split = 0; split < rowCounts.size(); ++split) {
        if (context.deadlinePassed())
          return;
        Choice choice = best;
        choice[i] = split;
        if (choice != best)
          take(choice);
      }
  }

  const SearchContext &context;
  int groupSize;
  int64_t &evaluations;
  std::vector<int> rowCounts;
  ShardingPlan base;
  std::vector<double> baseMs; ///< by device, of what it alone has in `base`.
  std::vector<Part> parts;
  Choice best;
  double bestMs = kInfiniteMs;
};

} // namespace

std::optional<ShardingPlan>
neuroshard::splitInGroups(const SearchContext &context, int groupSize,
                          const ShardingPlan &base,
                          std::span<const Shard> parts, int64_t &evaluations) {
  return Splitter(context, groupSize, evaluations).run(base, parts);
}
