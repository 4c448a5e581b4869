//===- RandomRestarts.cpp - Random forms and places until one fits
//----------===//
///
/// \file
/// The last resort, for problems in which memory and rules leave little: each
/// try draws a form for every table, an order, and how a device is chosen;
/// what fits nowhere is cut so that it fills up a device.
//===----------------------------------------------------------------------===//

#include "Forms/EvenColumns.h"
#include "Forms/TableForms.h"
#include "Search/Algorithms.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

using namespace neuroshard;

namespace {

/// Tries times pieces times devices; bounds on tries.
constexpr double kWork = 3e6;
constexpr double kMinTries = 8;
constexpr double kMaxTries = 3000;
constexpr int kBisections = 24;

/// What is placed together in one way: a table, a co-located set, or what a
/// table with shards written by hand is made of.
struct Entry {
  std::vector<int> tables;
  bool given = false;
  /// Of a set: the devices of what is written by hand.
  std::vector<int> fixedOn;
  /// Into the units every try begins with.
  size_t first = 0, count = 0;
};

class ChancePlacer {
public:
  ChancePlacer(const SearchContext &context, const std::vector<UnitPtr> &units,
               const std::vector<Entry> &entries, uint64_t seed)
      : context(context), entries(entries), random(seed),
        state(context, units) {
    all.resize(static_cast<size_t>(context.deviceCount));
    std::iota(all.begin(), all.end(), 0);
  }

  std::optional<SearchState> run();

private:
  bool placeEntry(const Entry &entry);
  bool placeTable(size_t index);
  bool placeSet(const Entry &entry);
  bool placeRest(size_t index, int table, const std::vector<int> &devices);
  bool shareRows(size_t index, const std::vector<int> &devices);
  bool placeMember(size_t index, const std::vector<int> &devices);
  bool placeReplicas(size_t index);
  bool placeBlocks(size_t index, const std::vector<int> &devices);
  bool placeCut(size_t index, const std::vector<int> &devices, bool rows);
  bool pourRows(size_t index, const std::vector<int> &devices);
  UnitPtr rowsOf(const Unit &unit, int64_t begin, int64_t end);
  bool placeRowBlocks(size_t index);
  bool placeFree(size_t index, const std::vector<int> &devices);
  bool placeParts(size_t index, const std::vector<UnitPtr> &parts,
                  const std::vector<int> &devices);
  std::vector<int> shuffled(std::vector<int> devices);
  std::optional<std::vector<UnitPtr>> fill(const Unit &unit, int device,
                                           Cut direction);
  std::optional<std::vector<UnitPtr>> cutAnywhere(const Unit &unit,
                                                  Cut direction);
  int tableOf(size_t index) const {
    return state.units()[index]->tables.front();
  }
  uint64_t below(size_t count) { return random() % count; }
  double share() { return static_cast<double>(below(1000) + 1) / 1002; }

  const SearchContext &context;
  const std::vector<Entry> &entries;
  std::mt19937_64 random;
  SearchState state;
  std::vector<int> all;
};

/// In a random order, or those with the most or least room first.
std::vector<int> ChancePlacer::shuffled(std::vector<int> devices) {
  for (size_t i = devices.size(); i > 1; --i)
    std::swap(devices[i - 1], devices[below(i)]);
  uint64_t how = below(3);
  if (how > 0)
    std::stable_sort(devices.begin(), devices.end(), [&](int a, int b) {
      return how == 1 ? state.freeBytes(a) > state.freeBytes(b)
                      : state.freeBytes(a) < state.freeBytes(b);
    });
  return devices;
}

/// The largest first part that fits, found by halving.
std::optional<std::vector<UnitPtr>>
ChancePlacer::fill(const Unit &unit, int device, Cut direction) {
  std::optional<std::vector<UnitPtr>> best;
  double low = 0, high = 1;
  for (int i = 0; i < kBisections; ++i) {
    double middle = (low + high) / 2;
    auto parts = cutAtShare(context, unit, middle, direction);
    if (parts && state.fits(device, *parts->front())) {
      best = std::move(parts);
      low = middle;
    } else {
      high = middle;
    }
  }
  return best;
}

/// One piece where it fits whole, or cut so that it fills devices up.
bool ChancePlacer::placeFree(size_t index, const std::vector<int> &devices) {
  std::vector<int> order = shuffled(devices);
  size_t rest = index;
  for (int cuts = 0; cuts <= 2 * context.deviceCount; ++cuts) {
    UnitPtr unit = state.units()[rest];
    for (int device : order)
      if (state.fits(device, *unit)) {
        state.place(rest, device);
        return true;
      }
    Cut first = below(2) ? Cut::Rows : Cut::Columns;
    std::optional<std::vector<UnitPtr>> parts;
    int where = -1;
    for (Cut direction : {first, first == Cut::Rows ? Cut::Columns : Cut::Rows})
      for (size_t i = 0; i < order.size() && !parts; ++i) {
        where = order[i];
        if (state.admits(where, *unit))
          parts = fill(*unit, where, direction);
      }
    if (!parts)
      return false;
    std::vector<size_t> indices = state.replace(rest, *parts);
    state.place(indices[0], where);
    rest = indices[1];
  }
  return false;
}

std::optional<std::vector<UnitPtr>> ChancePlacer::cutAnywhere(const Unit &unit,
                                                              Cut direction) {
  auto parts = cutAtShare(context, unit, share(), direction);
  if (parts)
    return parts;
  return direction == Cut::Columns ? splitColumns(context, unit, 2)
                                   : splitRows(context, unit, 2);
}

/// Rows of the unit from a row on.
UnitPtr ChancePlacer::rowsOf(const Unit &unit, int64_t begin, int64_t end) {
  Shard shard = unit.shards.front();
  shard.rowBegin = begin;
  shard.rowEnd = end;
  return makeUnit(context, {shard});
}

/// As many rows as fit, or fewer, on each of the devices in some order; not all
/// on the first. The caller knows that rows may be cut.
bool ChancePlacer::pourRows(size_t index, const std::vector<int> &devices) {
  UnitPtr unit = state.units()[index];
  int64_t row = unit->shards.front().rowBegin;
  int64_t end = unit->shards.front().rowEnd;
  bool full = below(3) > 0;
  std::vector<UnitPtr> parts;
  std::vector<int> places;
  for (int device : shuffled(devices)) {
    int64_t low = 0, high = end - row - (parts.empty() ? 1 : 0);
    while (low < high) {
      int64_t middle = low + (high - low + 1) / 2;
      if (state.fits(device, *rowsOf(*unit, row, row + middle)))
        low = middle;
      else
        high = middle - 1;
    }
    if (!full && low > 1)
      low = 1 + static_cast<int64_t>(below(static_cast<size_t>(low)));
    if (low == 0)
      continue;
    parts.push_back(rowsOf(*unit, row, row + low));
    places.push_back(device);
    row += low;
  }
  return row == end && placeParts(index, parts, places);
}

/// A table that may not stay whole.
bool ChancePlacer::placeCut(size_t index, const std::vector<int> &devices,
                            bool rows) {
  UnitPtr unit = state.units()[index];
  const TableRules &rules = context.rulesOf(tableOf(index));
  std::optional<std::vector<UnitPtr>> parts;
  if (!rows) {
    if (below(2))
      parts = fill(*unit, devices[below(devices.size())], Cut::Columns);
    if (!parts)
      parts = cutAnywhere(*unit, Cut::Columns);
    if (!parts)
      return false;
    for (size_t part : state.replace(index, *parts))
      if (!placeFree(part, devices))
        return false;
    return true;
  }
  // By columns, then each strip by rows.
  Shard left = unit->shards.front(), right = left;
  int64_t quads = (left.width() + kColumnAlignment - 1) / kColumnAlignment;
  if (quads < 2 || left.rows() < 2)
    return false;
  left.colEnd = right.colBegin =
      (1 + static_cast<int64_t>(below(static_cast<size_t>(quads - 1)))) *
      kColumnAlignment;
  if (std::min(left.width(), right.width()) < rules.minWidth)
    left.colEnd = right.colBegin = (quads + 1) / 2 * kColumnAlignment;
  if (std::min(left.width(), right.width()) < rules.minWidth)
    return false;
  std::vector<size_t> strips = state.replace(
      index, {makeUnit(context, {left}), makeUnit(context, {right})});
  return pourRows(strips[0], devices) && placeFree(strips[1], devices);
}

/// Part i on device i; one that is left over on the last.
bool ChancePlacer::placeParts(size_t index, const std::vector<UnitPtr> &parts,
                              const std::vector<int> &devices) {
  std::vector<size_t> indices = state.replace(index, parts);
  for (size_t i = 0; i < indices.size(); ++i) {
    int device = devices[std::min(i, devices.size() - 1)];
    if (!state.fits(device, *state.units()[indices[i]]))
      return false;
    state.place(indices[i], device);
  }
  return true;
}

bool ChancePlacer::placeReplicas(size_t index) {
  int table = tableOf(index);
  const TableRules &rules = context.rulesOf(table);
  if (!rules.allows(ShardingKind::Replicated) || context.deviceCount < 2)
    return false;
  Shard shard = wholeTable(context, table)->shards.front();
  shard.devices = all;
  UnitPtr unit = makeUnit(context, {shard}, Unit::kEverywhere);
  for (int device : all)
    if (!rules.allowsDevice(device) || !state.fits(device, *unit))
      return false;
  state.replace(index, {unit});
  state.place(index, Unit::kEverywhere);
  return true;
}

/// Equal blocks over a group that the target runs.
bool ChancePlacer::placeBlocks(size_t index, const std::vector<int> &devices) {
  int table = tableOf(index);
  for (const std::vector<int> &group : rowBlockGroups(context, table))
    if (group == devices && context.table(table).rows > 1)
      return placeParts(index, rowBlocks(context, table, group), group);
  return false;
}

/// In one of the groups that have room for all blocks.
bool ChancePlacer::placeRowBlocks(size_t index) {
  int table = tableOf(index);
  std::vector<std::vector<int>> groups = rowBlockGroups(context, table);
  std::erase_if(groups, [&](const std::vector<int> &group) {
    std::vector<UnitPtr> blocks = rowBlocks(context, table, group);
    for (size_t i = 0; i < blocks.size(); ++i)
      if (!state.fits(group[i], *blocks[i]))
        return true;
    return false;
  });
  return !groups.empty() && placeBlocks(index, groups[below(groups.size())]);
}

bool ChancePlacer::placeTable(size_t index) {
  int table = tableOf(index);
  const TableRules &rules = context.rulesOf(table);
  bool native = context.problem.target == Target::Native;
  std::vector<std::vector<int>> groups = rowBlockGroups(context, table);
  // Ways by how often they are tried; whole includes cut as needed.
  enum Way { Whole, Columns, Rows, Both, Replicas, Blocks };
  std::vector<Way> ways;
  auto add = [&](ShardingKind kind, Way way, size_t times) {
    if (rules.allows(kind))
      ways.insert(ways.end(), times, way);
  };
  add(ShardingKind::TableWise, Whole, 8);
  add(ShardingKind::ColumnWise, Columns, 2);
  add(ShardingKind::TableRowWise, native ? Rows : Blocks, native ? 2 : 4);
  add(ShardingKind::RowColumn, Both, 1);
  add(ShardingKind::Replicated, Replicas, 1);
  if (ways.empty())
    return false;
  Way way = ways[below(ways.size())];
  if (way == Whole) {
    UnitPtr whole = state.units()[index];
    return placeFree(index, all) ||
           (state.units()[index] == whole && !native && placeRowBlocks(index));
  }
  if (way == Replicas)
    return placeReplicas(index);
  if (way == Blocks)
    return placeRowBlocks(index);
  if (way != Rows)
    return placeCut(index, all, way == Both);
  if (context.table(table).rows < 2)
    return false;
  bool anywhere = rules.allows(ShardingKind::RowWise);
  if (!anywhere && groups.empty())
    return false;
  return pourRows(index, anywhere ? all : groups[below(groups.size())]);
}

/// Rows in proportion to what is free; false when that is not allowed.
bool ChancePlacer::shareRows(size_t index, const std::vector<int> &devices) {
  UnitPtr unit = state.units()[index];
  int64_t rows = unit->shards.front().rows();
  if (!splitRows(context, *unit, static_cast<int>(devices.size())))
    return false;
  double total = 0, before = 0;
  for (int device : devices)
    total += static_cast<double>(std::max<int64_t>(1, state.freeBytes(device)));
  std::vector<UnitPtr> parts;
  int64_t begin = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    before +=
        static_cast<double>(std::max<int64_t>(1, state.freeBytes(devices[i])));
    int64_t most = rows - static_cast<int64_t>(devices.size() - i - 1);
    int64_t end =
        i + 1 == devices.size()
            ? rows
            : std::clamp(static_cast<int64_t>(static_cast<double>(rows) *
                                              before / total),
                         begin + 1, most);
    parts.push_back(rowsOf(*unit, begin, end));
    begin = end;
  }
  return placeParts(index, parts, devices);
}

/// A member of a co-located set, on each of these devices.
bool ChancePlacer::placeMember(size_t index, const std::vector<int> &devices) {
  int count = static_cast<int>(devices.size());
  UnitPtr unit = state.units()[index];
  if (count == 1 &&
      context.rulesOf(tableOf(index)).allows(ShardingKind::TableWise))
    return placeParts(index, {unit}, devices);
  if (count == context.deviceCount && below(3) == 0 && placeReplicas(index))
    return true;
  std::vector<int> sorted = devices;
  std::sort(sorted.begin(), sorted.end());
  if (below(2) && placeBlocks(index, sorted))
    return true;
  if (count > 1 && below(2) && shareRows(index, devices))
    return true;
  bool columns = below(2);
  for (int attempt = 0; attempt < 2; ++attempt, columns = !columns) {
    auto parts = columns ? splitColumns(context, *unit, std::max(2, count))
                         : splitRows(context, *unit, std::max(2, count));
    if (parts)
      return placeParts(index, *parts, devices);
  }
  return placeBlocks(index, sorted) ||
         (count == context.deviceCount && placeReplicas(index));
}

/// What is left of a member of which some is written by hand: on the devices on
/// which the member is not, or, if it is on all, on any.
bool ChancePlacer::placeRest(size_t index, int table,
                             const std::vector<int> &devices) {
  std::vector<int> missing = devices;
  for (const Shard &shard : context.problem.constraints.fixedShards)
    if (context.tableIndex(shard.table) == table)
      std::erase_if(missing, [&](int device) {
        return std::count(shard.devices.begin(), shard.devices.end(), device);
      });
  UnitPtr unit = state.units()[index];
  if (missing.size() == 1 && state.fits(missing.front(), *unit) && below(2))
    return placeParts(index, {unit}, missing);
  if (missing.size() > 1 && below(2) && shareRows(index, missing))
    return true;
  return placeFree(index, devices);
}

/// On a random number of devices, or a group that row blocks need.
bool ChancePlacer::placeSet(const Entry &entry) {
  std::vector<int> devices = shuffled(all);
  std::erase_if(devices, [&](int device) {
    return !std::all_of(
        entry.tables.begin(), entry.tables.end(),
        [&](int table) { return context.rulesOf(table).allowsDevice(device); });
  });
  if (devices.empty())
    return false;
  std::vector<std::vector<int>> groups =
      rowBlockGroups(context, entry.tables[below(entry.tables.size())]);
  if (!groups.empty() && below(3) == 0)
    devices = groups[below(groups.size())];
  else
    devices.resize(1 + below(devices.size()));
  for (int device : entry.fixedOn)
    if (std::count(devices.begin(), devices.end(), device) == 0)
      devices.push_back(device);
  for (size_t i = entry.first; i < entry.first + entry.count; ++i) {
    int table = tableOf(i);
    if (state.deviceOf(i) == SearchState::kUnplaced &&
        !(context.rulesOf(table).fixed ? placeRest(i, table, devices)
                                       : placeMember(i, devices)))
      return false;
  }
  return true;
}

bool ChancePlacer::placeEntry(const Entry &entry) {
  if (!entry.given)
    return entry.tables.size() > 1 ? placeSet(entry) : placeTable(entry.first);
  for (size_t i = entry.first; i < entry.first + entry.count; ++i)
    if (state.deviceOf(i) == SearchState::kUnplaced && !placeFree(i, all))
      return false;
  return true;
}

std::optional<SearchState> ChancePlacer::run() {
  if (!state.withinMemory())
    return std::nullopt;
  std::vector<std::pair<double, size_t>> order;
  bool restrictedFirst = below(2);
  for (size_t i = 0; i < entries.size(); ++i) {
    const Unit &unit = *state.units()[entries[i].first];
    double key = share();
    if (restrictedFirst)
      key = freedomOf(context, unit) - key * 0.9 +
            1 / (1 + key * static_cast<double>(unit.peakBytes()));
    order.emplace_back(key, i);
  }
  std::sort(order.begin(), order.end());
  for (auto [key, entry] : order)
    if (!placeEntry(entries[entry]))
      return std::nullopt;
  state = withEvenColumns(std::move(state));
  // Kinds of whole tables and what columns take everywhere show only now.
  if (!state.withinMemory() || !verify(state.plan(), context.problem).empty())
    return std::nullopt;
  return std::move(state);
}

std::vector<Entry> entriesOf(const SearchContext &context,
                             const std::vector<UnitPtr> &initial,
                             std::vector<UnitPtr> &units) {
  std::vector<Entry> entries;
  for (FormEntry &form : formEntries(context, initial)) {
    std::set<int> tables;
    bool fixed = false;
    for (const UnitPtr &unit : form.given.pieces)
      for (int table : unit->tables) {
        tables.insert(table);
        fixed = fixed || context.rulesOf(table).fixed;
      }
    bool set = context.rulesOf(*tables.begin()).coLocateLeader >= 0;
    Entry entry{.tables = {tables.begin(), tables.end()},
                .given = fixed && !set,
                .fixedOn = {},
                .first = units.size()};
    for (const UnitPtr &unit : form.given.pieces) {
      if (!fixed || (set && !context.rulesOf(unit->tables.front()).fixed))
        continue;
      bool free = set && !unit->writtenByHand;
      units.push_back(free ? makeUnit(context, unit->shards) : unit);
      if (set && unit->writtenByHand)
        entry.fixedOn.insert(entry.fixedOn.end(),
                             unit->shards.front().devices.begin(),
                             unit->shards.front().devices.end());
    }
    for (int table : tables)
      if (!context.rulesOf(table).fixed && !entry.given)
        units.push_back(wholeTable(context, table));
    entry.count = units.size() - entry.first;
    entries.push_back(std::move(entry));
  }
  return entries;
}

} // namespace

void neuroshard::placeByChance(const SearchContext &context,
                               const std::vector<UnitPtr> &initial,
                               Outcome &outcome) {
  std::vector<UnitPtr> units;
  std::vector<Entry> entries = entriesOf(context, initial, units);
  double size = static_cast<double>(units.size()) * context.deviceCount;
  int tries = static_cast<int>(std::clamp(kWork / size, kMinTries, kMaxTries));
  for (int i = 0; i < tries && !context.deadlinePassed(); ++i) {
    ChancePlacer placer(context, units, entries,
                        context.options.seed * 100003 +
                            static_cast<uint64_t>(i));
    ++outcome.evaluations;
    if (auto state = placer.run()) {
      outcome.tried.push_back("random forms and places, try " +
                              std::to_string(i + 1) + ": " +
                              formatMs(state->costMs()));
      outcome.stopReason = "memory and rules leave so little that the first "
                           "plan found was kept";
      outcome.state = std::move(state);
      return;
    }
  }
}
