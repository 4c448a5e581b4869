//===- RandomPlacer.cpp - Random placement of tables ----------------------===//

#include "RandomPlacer.h"

#include "Forms/EvenColumns.h"
#include "Forms/TableForms.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>

using namespace neuroshard;

static constexpr int kBisections = 24;

/// The devices in a random order, or by the room that they have left.
std::vector<int> RandomPlacer::shuffled(std::vector<int> devices) {
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

/// The unit in two parts, the first the largest that fits the device, found by
/// bisection.
std::optional<std::vector<UnitPtr>>
RandomPlacer::fill(const Unit &unit, int device, Cut direction) {
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

/// Places a unit whole where it fits, or else cut so that it fills devices up.
bool RandomPlacer::placeFree(size_t index, const std::vector<int> &devices) {
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

std::optional<std::vector<UnitPtr>> RandomPlacer::cutAnywhere(const Unit &unit,
                                                              Cut direction) {
  auto parts = cutAtShare(context, unit, share(), direction);
  if (parts)
    return parts;
  return direction == Cut::Columns ? splitColumns(context, unit, 2)
                                   : splitRows(context, unit, 2);
}

/// Rows [begin, end) of the unit.
UnitPtr RandomPlacer::rowsOf(const Unit &unit, int64_t begin, int64_t end) {
  Shard shard = unit.shards.front();
  shard.rowBegin = begin;
  shard.rowEnd = end;
  return makeUnit(context, {shard});
}

/// Places at most as many rows as fit on each of the devices in a random order,
/// but not all on the first. The caller knows that rows may be cut.
bool RandomPlacer::pourRows(size_t index, const std::vector<int> &devices) {
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

/// Places a table that may not stay whole.
bool RandomPlacer::placeCut(size_t index, const std::vector<int> &devices,
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
  // Cut by columns, then each strip by rows.
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

/// Places part i on device i, and parts beyond the last device on that one.
bool RandomPlacer::placeParts(size_t index, const std::vector<UnitPtr> &parts,
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

bool RandomPlacer::placeReplicas(size_t index) {
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

/// Places equal row blocks on a group that the target runs.
bool RandomPlacer::placeBlocks(size_t index, const std::vector<int> &devices) {
  int table = tableOf(index);
  for (const std::vector<int> &group : rowBlockGroups(context, table))
    if (group == devices && context.table(table).rows > 1)
      return placeParts(index, rowBlocks(context, table, group), group);
  return false;
}

/// Places row blocks on one of the groups that have room for all of them.
bool RandomPlacer::placeRowBlocks(size_t index) {
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

bool RandomPlacer::placeTable(size_t index) {
  int table = tableOf(index);
  const TableRules &rules = context.rulesOf(table);
  bool native = context.problem.target == Target::Native;
  std::vector<std::vector<int>> groups = rowBlockGroups(context, table);
  // Ways to place a table, repeated by how often they are to be drawn.
  enum Way { Whole, Columns, Rows, Both, Replicas, Blocks };
  std::vector<Way> ways;
  auto add = [&](ShardingKind kind, Way way, size_t times) {
    if (rules.allows(kind))
      ways.insert(ways.end(), times, way);
  };
  add(ShardingKind::TableWise, Whole, 8);
  add(ShardingKind::ColumnWise, Columns, 2);
  if (rules.allows(ShardingKind::RowWise) ||
      rules.allows(ShardingKind::TableRowWise))
    ways.insert(ways.end(), native ? 2 : 4, native ? Rows : Blocks);
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

bool RandomPlacer::placeEntry(const RandomEntry &entry) {
  if (!entry.given)
    return entry.tables.size() > 1 ? placeSet(entry) : placeTable(entry.first);
  for (size_t i = entry.first; i < entry.first + entry.count; ++i)
    if (state.deviceOf(i) == SearchState::kUnplaced && !placeFree(i, all))
      return false;
  return true;
}

std::optional<SearchState> RandomPlacer::run() {
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
  // Only a complete placement shows the kinds of the tables and the memory for
  // joining columns.
  if (!state.withinMemory() || !verify(state.plan(), context.problem).empty())
    return std::nullopt;
  return std::move(state);
}
