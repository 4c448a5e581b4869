//===- InitialUnits.cpp - The units of a problem before any search --------===//

#include "InitialUnits.h"

#include "UncoveredParts.h"
#include "UnitMaker.h"
#include "Units/TargetRules.h"

#include <algorithm>
#include <limits>

using namespace neuroshard;

void UnitMaker::addFixedShards() {
  for (const Shard &shard : context.problem.constraints.fixedShards) {
    fixedOfTable[context.tableIndex(shard.table)].push_back(&shard);
    int device = shard.hasCopies() ? Unit::kEverywhere : shard.devices.front();
    units.push_back(makeUnit(context, {shard}, device, true));
  }
}

/// Adds what the fixed shards of a table leave of it.
void UnitMaker::addRest(int table, const std::vector<const Shard *> &fixed) {
  std::vector<Rectangle> covered;
  for (const Shard *shard : fixed)
    covered.push_back(
        {{shard->rowBegin, shard->rowEnd}, {shard->colBegin, shard->colEnd}});
  Shard rest = whole(table);
  auto unitsOf = [&](const std::vector<Rectangle> &rectangles) {
    std::vector<UnitPtr> parts;
    for (const Rectangle &rectangle : rectangles) {
      Shard part = rest;
      part.rowBegin = rectangle.rows.begin;
      part.rowEnd = rectangle.rows.end;
      part.colBegin = rectangle.cols.begin;
      part.colEnd = rectangle.cols.end;
      parts.push_back(makeUnit(context, {part}));
    }
    return parts;
  };
  auto bytesOf = [](const std::vector<UnitPtr> &parts) {
    int64_t bytes = 0;
    for (const UnitPtr &part : parts)
      bytes += part->peakBytes();
    return bytes;
  };
  Rectangle all{{0, rest.rowEnd}, {0, rest.colEnd}};
  std::vector<UnitPtr> strips = unitsOf(uncoveredStrips(all, covered));
  // Narrow rows may be padded, or repeat ids; wide ones repeat results.
  std::vector<UnitPtr> bands = unitsOf(uncoveredBands(all, covered));
  bool bandsAreSmaller = bytesOf(bands) < bytesOf(strips);
  for (UnitPtr &part : bandsAreSmaller ? bands : strips)
    units.push_back(std::move(part));
}

void UnitMaker::addRectangle(const Shard &rectangle) {
  units.push_back(makeUnit(context, {rectangle}));
}

bool UnitMaker::addReplicas(int table) {
  for (int device = 0; device < context.deviceCount; ++device)
    if (!context.rulesOf(table).allowsDevice(device))
      return false;
  Shard shard = whole(table);
  for (int device = 0; device < context.deviceCount; ++device)
    shard.devices.push_back(device);
  units.push_back(makeUnit(context, {shard}, Unit::kEverywhere));
  return true;
}

/// The group whose fullest device has the most room beside the units without a
/// choice; if possible one without tables that this one is separated from.
const std::vector<int> &
UnitMaker::roomiestGroup(int table,
                         const std::vector<std::vector<int>> &groups) const {
  std::vector<int64_t> room;
  std::vector<bool> avoided(static_cast<size_t>(context.deviceCount));
  for (int device = 0; device < context.deviceCount; ++device)
    room.push_back(context.memoryOf(device) -
                   context.baseOf(device).peakBytes());
  for (const UnitPtr &unit : units)
    for (int device = 0; device < context.deviceCount; ++device) {
      if (unit->forcedDevice != device &&
          unit->forcedDevice != Unit::kEverywhere)
        continue;
      room[static_cast<size_t>(device)] -= unit->peakBytes();
      for (int other : unit->tables)
        for (int set : context.rulesOf(other).separateSets)
          for (int own : context.rulesOf(table).separateSets)
            if (set == own && other != table)
              avoided[static_cast<size_t>(device)] = true;
    }
  auto rank = [&](const std::vector<int> &group) {
    bool clash = false;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int device : group) {
      clash = clash || avoided[static_cast<size_t>(device)];
      least = std::min(least, room[static_cast<size_t>(device)]);
    }
    return std::pair(clash, -least);
  };
  return *std::min_element(
      groups.begin(), groups.end(),
      [&](const auto &a, const auto &b) { return rank(a) < rank(b); });
}

/// Adds a table that may not stay whole in an allowed form.
bool UnitMaker::addInAllowedForm(int table) {
  const TableRules &rules = context.rulesOf(table);
  UnitPtr unit = makeUnit(context, {whole(table)});
  auto addAll = [&](const std::vector<UnitPtr> &parts) {
    units.insert(units.end(), parts.begin(), parts.end());
    return true;
  };
  if (auto halves = splitColumns(context, *unit, 2))
    return addAll(*halves);
  int allowedDevices = 0;
  for (int device = 0; device < context.deviceCount; ++device)
    allowedDevices += rules.allowsDevice(device);
  if (auto parts = splitRows(
          context, *unit,
          static_cast<int>(std::min<int64_t>(std::max(2, allowedDevices),
                                             context.table(table).rows))))
    return addAll(*parts);
  std::vector<std::vector<int>> groups = rowBlockGroups(context, table);
  if (!groups.empty() && context.table(table).rows > 1)
    return addAll(rowBlocks(context, table, roomiestGroup(table, groups)));
  if (rules.allows(ShardingKind::RowColumn)) {
    std::vector<Shard> quarters;
    const Table &source = context.table(table);
    int64_t middle = (source.dim / 2 + kColumnAlignment - 1) /
                     kColumnAlignment * kColumnAlignment;
    if (source.dim - middle < rules.minWidth)
      middle -= kColumnAlignment;
    bool possible = source.rows > 1 && middle < source.dim &&
                    middle >= rules.minWidth &&
                    source.dim - middle >= rules.minWidth;
    for (int quarter = 0; quarter < 4 && possible; ++quarter) {
      Shard shard = whole(table);
      (quarter % 2 ? shard.colBegin : shard.colEnd) = middle;
      (quarter / 2 ? shard.rowBegin : shard.rowEnd) = source.rows / 2;
      addRectangle(shard);
    }
    if (possible)
      return true;
  }
  return rules.allows(ShardingKind::Replicated) && addReplicas(table);
}

void UnitMaker::addTable(int table) {
  if (context.rulesOf(table).allows(ShardingKind::TableWise))
    return addRectangle(whole(table));
  if (addInAllowedForm(table))
    return;
  const Table &source = context.table(table);
  std::string message = "table '" + source.name + "' (" +
                        std::to_string(source.rows) + " rows x " +
                        std::to_string(source.dim) +
                        " columns) cannot be cut in any of the kinds its "
                        "constraint and the target allow";
  bool exactRows = context.rulesOf(table).exactRows;
  std::string optimizer(toString(source.optimizer.kind));
  if (exactRows && context.problem.target == Target::TorchRec19)
    message += "; target torchrec-1.9 keeps one state per column shard, which "
               "optimizer_semantics exact forbids for " +
               optimizer;
  else if (everyDeviceNeedsRows(context.problem) &&
           devicesWithRows(source.rows, context.deviceCount) <
               context.deviceCount)
    message += "; on the CPU, target torchrec-1.9 cuts by rows only tables "
               "with rows for every device";
  fail(std::move(message), "allow table_wise, or another kind, for this table");
}

tl::expected<std::vector<UnitPtr>, PlanningError> UnitMaker::run() {
  addFixedShards();
  for (size_t i = 0; i < context.problem.tables.size(); ++i) {
    int table = static_cast<int>(i);
    auto fixed = fixedOfTable.find(table);
    if (context.rulesOf(table).coLocateLeader >= 0)
      continue;
    if (fixed != fixedOfTable.end())
      addRest(table, fixed->second);
    else
      addTable(table);
  }
  addCoLocated();
  if (failure)
    return tl::unexpected(*failure);
  return std::move(units);
}

tl::expected<std::vector<UnitPtr>, PlanningError>
neuroshard::initialUnits(const SearchContext &context) {
  return UnitMaker(context).run();
}
