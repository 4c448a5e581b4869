//===- RandomPlacerCoLocated.cpp - Random placement of co-located sets ----===//

#include "RandomPlacer.h"

#include <algorithm>

using namespace neuroshard;

/// Cuts rows in proportion to the free memory of the devices and places them;
/// false when rows may not be cut.
bool RandomPlacer::shareRows(size_t index, const std::vector<int> &devices) {
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

/// Places a table of a co-located set so that each of these devices has a part.
bool RandomPlacer::placeMember(size_t index, const std::vector<int> &devices) {
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

/// Places the rest of a table of a co-located set with shards written by hand:
/// on the devices without such a shard or, if there are none, on any.
bool RandomPlacer::placeRest(size_t index, int table,
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

/// Places a co-located set on a random number of devices or on a group that
/// row blocks need.
bool RandomPlacer::placeSet(const RandomEntry &entry) {
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
