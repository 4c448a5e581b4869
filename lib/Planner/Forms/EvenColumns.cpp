//===- EvenColumns.cpp - Equal widths of a table on one device ------------===//
///
/// \file
/// Searches cut columns as finely as the alignment allows and may leave shards
/// of two widths of one table on a device. TorchRec reads all shards that a
/// rank has of a table as rows of the first one's width. Joining such shards is
/// never worse: joined, they read the same ids once.
//===----------------------------------------------------------------------===//

#include "EvenColumns.h"

#include <algorithm>
#include <map>

using namespace neuroshard;

namespace {

/// Widths of a table's shards by device; under kHomeless those without a
/// device.
using Widths = std::map<int, std::vector<int64_t>>;
constexpr int kHomeless = SearchState::kUnplaced;

class Evener {
public:
  explicit Evener(const SearchState &state)
      : state(state), context(state.context()),
        unitsOf(context.problem.tables.size()) {}

  std::optional<SearchState> run();

private:
  void collect();
  std::optional<Widths> widthsOf(int table) const;
  bool even(int table, Widths &widths) const;
  int64_t evenCount(int table, int64_t width, bool alone) const;
  void recut(int table, const Widths &widths);
  bool house(SearchState &result) const;

  const SearchState &state;
  const SearchContext &context;
  std::vector<std::vector<size_t>> unitsOf;
  /// Units of the result, and the device of each.
  std::vector<UnitPtr> units;
  std::vector<int> devices;
  /// By table, the device that a homeless shard must not be on.
  std::map<int, int> leaves;
};

void Evener::collect() {
  for (size_t i = 0; i < state.units().size(); ++i)
    for (int table : state.units()[i]->tables)
      unitsOf[static_cast<size_t>(table)].push_back(i);
}

/// The widths of a table's shards, if all are column shards that may be
/// changed.
std::optional<Widths> Evener::widthsOf(int table) const {
  Widths widths;
  for (size_t i : unitsOf[static_cast<size_t>(table)]) {
    const Unit &unit = *state.units()[i];
    const Shard &shard = unit.shards.front();
    if (!state.movable(i) || unit.shards.size() > 1 || state.deviceOf(i) < 0 ||
        shard.rows() != context.table(table).rows)
      return std::nullopt;
    widths[state.deviceOf(i)].push_back(shard.width());
  }
  return widths;
}

bool isEven(const std::vector<int64_t> &widths) {
  return std::all_of(widths.begin(), widths.end(),
                     [&](int64_t width) { return width == widths.front(); });
}

/// The smallest number of equal shards of `width` columns on one device; 0 if
/// there is none. `alone`: they are the whole table.
int64_t Evener::evenCount(int table, int64_t width, bool alone) const {
  const TableRules &rules = context.rulesOf(table);
  bool mayBeWhole = rules.allows(ShardingKind::TableWise);
  for (int64_t count = alone && !mayBeWhole ? 2 : 1;
       width / count >= std::max(rules.minWidth, kColumnAlignment); ++count)
    if (width % (count * kColumnAlignment) == 0)
      return count;
  return 0;
}

/// Evens the widths of a table out; false when they are equal already.
bool Evener::even(int table, Widths &widths) const {
  bool changed = false;
  bool alone = widths.size() == 1;
  Widths before = widths;
  for (auto &[device, own] : before) {
    if (isEven(own))
      continue;
    changed = true;
    int64_t sum = 0;
    for (int64_t width : own)
      sum += width;
    std::vector<int64_t> &result = widths[device];
    int64_t count = evenCount(table, sum, alone);
    if (count > 0) {
      result.assign(static_cast<size_t>(count), sum / count);
      continue;
    }
    // One shard leaves the device; the others can then be joined.
    auto narrowest = std::min_element(result.begin(), result.end());
    widths[kHomeless] = {*narrowest};
    result = {sum - *narrowest};
  }
  return changed;
}

void Evener::recut(int table, const Widths &widths) {
  int64_t column = 0;
  for (const auto &[device, own] : widths)
    for (int64_t width : own) {
      Shard shard = state.units()[unitsOf[static_cast<size_t>(table)].front()]
                        ->shards.front();
      shard.colBegin = column;
      shard.colEnd = column = column + width;
      units.push_back(makeUnit(context, {shard}));
      devices.push_back(device);
      if (device == kHomeless)
        leaves[table] = widths.rbegin()->first;
    }
}

/// Finds the cheapest device for each homeless shard.
bool Evener::house(SearchState &result) const {
  for (size_t i = 0; i < result.units().size(); ++i) {
    if (result.deviceOf(i) != kHomeless)
      continue;
    const Unit &unit = *result.units()[i];
    int best = -1;
    double bestMs = 0;
    for (int device = 0; device < context.deviceCount; ++device) {
      if (device == leaves.at(unit.tables.front()) ||
          !result.fits(device, unit))
        continue;
      double costMs = result.costWith(device, unit);
      if (best >= 0 && costMs >= bestMs)
        continue;
      best = device;
      bestMs = costMs;
    }
    if (best < 0)
      return false;
    result.place(i, best);
  }
  return true;
}

std::optional<SearchState> Evener::run() {
  collect();
  std::vector<bool> taken(state.units().size());
  for (size_t t = 0; t < unitsOf.size(); ++t) {
    int table = static_cast<int>(t);
    std::optional<Widths> widths = widthsOf(table);
    if (!widths || !even(table, *widths))
      continue;
    recut(table, *widths);
    for (size_t i : unitsOf[t])
      taken[i] = true;
  }
  if (units.empty())
    return std::nullopt;
  for (size_t i = 0; i < taken.size(); ++i)
    if (!taken[i]) {
      units.push_back(state.units()[i]);
      devices.push_back(state.deviceOf(i));
    }
  SearchState result(context, units);
  for (size_t i = 0; i < units.size(); ++i)
    if (result.deviceOf(i) == SearchState::kUnplaced && devices[i] != kHomeless)
      result.place(i, devices[i]);
  if (!house(result) || !result.withinMemory())
    return std::nullopt;
  return result;
}

} // namespace

SearchState neuroshard::withEvenColumns(SearchState state) {
  if (state.context().problem.target != Target::TorchRec19)
    return state;
  std::optional<SearchState> even = Evener(state).run();
  return even ? std::move(*even) : std::move(state);
}
