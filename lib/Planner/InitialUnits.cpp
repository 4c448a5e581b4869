//===- InitialUnits.cpp - What there is to place before any search --------===//

#include "Unit.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

using namespace neuroshard;

namespace {

Diagnosis constraintDiagnosis(std::string message, std::string advice) {
  return {Limit::Constraint, std::move(message), {}, std::move(advice)};
}

class UnitMaker {
public:
  explicit UnitMaker(const SearchContext &context) : context(context) {}

  tl::expected<std::vector<UnitPtr>, Diagnosis> run();

private:
  void addFixedShards();
  void addRest(int table, const std::vector<const Shard *> &fixed);
  void addRectangle(const Shard &rectangle);
  void addTable(int table);
  void addCoLocated();
  void addCoLocatedParts(const std::vector<int> &tables);
  std::optional<std::vector<std::vector<Shard>>>
  partsOf(int table, const std::vector<int> &group) const;
  void addAroundFixed(const std::vector<int> &tables);
  bool addOnEach(int table, const std::vector<int> &devices);
  bool addRestOnEach(int table, const std::vector<int> &devices);
  bool anyFixed(const std::vector<int> &tables) const;
  bool allMayStayWhole(const std::vector<int> &tables) const;
  bool addInAllowedForm(int table);
  bool addReplicas(int table);
  const std::vector<int> &
  roomiestGroup(int table, const std::vector<std::vector<int>> &groups) const;
  void fail(std::string message, std::string advice) {
    if (!failure)
      failure = constraintDiagnosis(std::move(message), std::move(advice));
  }

  Shard whole(int table) const {
    const Table &source = context.table(table);
    return {.name = "",
            .table = source.name,
            .rowEnd = source.rows,
            .colEnd = source.dim,
            .devices = {}};
  }

  const SearchContext &context;
  std::vector<UnitPtr> units;
  std::map<int, std::vector<const Shard *>> fixedOfTable;
  std::optional<Diagnosis> failure;
};

void UnitMaker::addFixedShards() {
  for (const Shard &shard : context.problem.constraints.fixedShards) {
    fixedOfTable[context.tableIndex(shard.table)].push_back(&shard);
    int device = shard.replicated() ? Unit::kEverywhere : shard.devices.front();
    units.push_back(makeUnit(context, {shard}, device, true));
  }
}

/// What the fixed shards of a table leave uncovered, as rectangles: per strip
/// between two column boundaries the free row ranges; equal ranges of
/// neighbouring strips joined.
void UnitMaker::addRest(int table, const std::vector<const Shard *> &fixed) {
  Shard rest = whole(table);
  std::set<int64_t> columns = {0, rest.colEnd};
  for (const Shard *shard : fixed) {
    columns.insert(shard->colBegin);
    columns.insert(shard->colEnd);
  }
  std::vector<const Shard *> byRow = fixed;
  std::sort(byRow.begin(), byRow.end(),
            [](auto *a, auto *b) { return a->rowBegin < b->rowBegin; });
  std::vector<Shard> open;
  for (auto column = columns.begin(); std::next(column) != columns.end();
       ++column) {
    int64_t colBegin = *column, colEnd = *std::next(column);
    std::vector<Shard> strip;
    auto addRange = [&](int64_t begin, int64_t end) {
      if (begin >= end)
        return;
      Shard part = rest;
      part.rowBegin = begin;
      part.rowEnd = end;
      part.colBegin = colBegin;
      part.colEnd = colEnd;
      for (const Shard &left : open)
        if (left.rowBegin == begin && left.rowEnd == end)
          part.colBegin = left.colBegin;
      strip.push_back(part);
    };
    int64_t row = 0;
    for (const Shard *shard : byRow) {
      if (shard->colBegin > colBegin || shard->colEnd < colEnd)
        continue;
      addRange(row, shard->rowBegin);
      row = shard->rowEnd;
    }
    addRange(row, rest.rowEnd);
    for (const Shard &left : open)
      if (std::none_of(strip.begin(), strip.end(), [&](const Shard &part) {
            return part.rowBegin == left.rowBegin && part.rowEnd == left.rowEnd;
          }))
        addRectangle(left);
    open = std::move(strip);
  }
  for (const Shard &left : open)
    addRectangle(left);
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

/// The group whose fullest device has the most room left by shards that have no
/// choice, if possible away from tables that this one must avoid.
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

/// For a table that may not stay whole.
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
  bool exactRows =
      context.problem.optimizerSemantics == OptimizerSemantics::Exact &&
      source.optimizer.kind == OptimizerKind::RowWiseAdagrad;
  if (exactRows && source.optimizer.weightDecay != 0)
    message += "; rowwise_adagrad with weight decay cannot be exact over "
               "column shards";
  else if (exactRows && context.problem.target == Target::TorchRec19)
    message += "; target torchrec-1.9 keeps one state per column shard, which "
               "optimizer_semantics exact forbids for rowwise_adagrad";
  fail(std::move(message), "allow table_wise, or another kind, for this table");
}

bool UnitMaker::anyFixed(const std::vector<int> &tables) const {
  return std::any_of(tables.begin(), tables.end(),
                     [&](int table) { return context.rulesOf(table).fixed; });
}

bool UnitMaker::allMayStayWhole(const std::vector<int> &tables) const {
  return std::all_of(tables.begin(), tables.end(), [&](int table) {
    return context.rulesOf(table).allows(ShardingKind::TableWise);
  });
}

/// The table for `count` devices, each of which gets one of the lists; nothing
/// when no allowed kind does that.
std::optional<std::vector<std::vector<Shard>>>
UnitMaker::partsOf(int table, const std::vector<int> &group) const {
  int count = static_cast<int>(group.size());
  UnitPtr unit = makeUnit(context, {whole(table)});
  std::vector<std::vector<Shard>> lists;
  auto take = [&](const std::vector<UnitPtr> &parts) {
    for (const UnitPtr &part : parts)
      lists.push_back(part->shards);
    return lists;
  };
  if (auto parts = splitColumns(context, *unit, count))
    return take(*parts);
  if (auto parts = splitRows(context, *unit, count))
    return take(*parts);
  for (const std::vector<int> &own : rowBlockGroups(context, table))
    if (own == group && context.table(table).rows > 1 &&
        rowBlocks(context, table, own).size() == own.size())
      return take(rowBlocks(context, table, own));
  // Strips of columns in two by rows each.
  const Table &source = context.table(table);
  int64_t groups = (source.dim + kColumnAlignment - 1) / kColumnAlignment;
  if (!context.rulesOf(table).allows(ShardingKind::RowColumn) ||
      source.rows < 2 || groups < count)
    return std::nullopt;
  for (int i = 0; i < count; ++i) {
    Shard upper = whole(table);
    upper.colBegin = groups * i / count * kColumnAlignment;
    if (i + 1 < count)
      upper.colEnd = groups * (i + 1) / count * kColumnAlignment;
    if (upper.width() < context.rulesOf(table).minWidth)
      return std::nullopt;
    Shard lower = upper;
    upper.rowEnd = lower.rowBegin = source.rows / 2;
    lists.push_back({upper, lower});
  }
  return lists;
}

/// Tables of which some must be cut and all have to be on the same devices:
/// a part of each on every device of a group, or else all parts on one device.
void UnitMaker::addCoLocatedParts(const std::vector<int> &tables) {
  std::vector<std::vector<int>> groups;
  for (int table : tables)
    for (const std::vector<int> &group : rowBlockGroups(context, table))
      groups.push_back(group);
  std::vector<int> everywhere(static_cast<size_t>(context.deviceCount));
  std::iota(everywhere.begin(), everywhere.end(), 0);
  auto mayReplicate = [&](int table) {
    return context.deviceCount > 1 &&
           context.rulesOf(table).allows(ShardingKind::Replicated);
  };
  if (std::any_of(tables.begin(), tables.end(), mayReplicate))
    groups.insert(groups.begin(), everywhere);
  // Two devices, whichever they are.
  size_t anywhere = groups.size();
  groups.push_back({-1, -1});
  for (size_t i = groups.size(); i-- > 0;) {
    std::vector<std::vector<Shard>> together(groups[i].size());
    std::vector<int> replicated;
    bool all = std::all_of(tables.begin(), tables.end(), [&](int table) {
      auto parts = partsOf(table, groups[i]);
      if (!parts && groups[i] == everywhere && mayReplicate(table)) {
        replicated.push_back(table);
        return true;
      }
      for (size_t k = 0; parts && k < parts->size(); ++k)
        together[k].insert(together[k].end(), (*parts)[k].begin(),
                           (*parts)[k].end());
      return parts.has_value();
    });
    if (!all)
      continue;
    for (size_t k = 0; k < together.size(); ++k)
      if (!together[k].empty())
        units.push_back(
            makeUnit(context, together[k], i == anywhere ? -1 : groups[i][k]));
    for (int table : replicated)
      if (!addReplicas(table))
        fail("co-located table '" + context.table(table).name +
                 "' can only be replicated, and may not be on every device",
             "allow another kind for it, or every device for the set");
    return;
  }
  std::vector<Shard> shards;
  for (int table : tables) {
    if (context.rulesOf(table).allows(ShardingKind::TableWise)) {
      shards.push_back(whole(table));
      continue;
    }
    auto parts = partsOf(table, {-1, -1});
    if (!parts)
      return fail("co-located table '" + context.table(table).name +
                      "' may not stay whole, and cannot be cut so that the "
                      "whole set is on the same devices",
                  "allow table_wise for it, or write its shards by hand");
    for (const std::vector<Shard> &list : *parts)
      shards.insert(shards.end(), list.begin(), list.end());
  }
  units.push_back(makeUnit(context, std::move(shards)));
}

/// A set of which some is written by hand: the rest goes to the devices of what
/// is, and each table to all of them.
void UnitMaker::addAroundFixed(const std::vector<int> &tables) {
  std::set<int> places;
  for (int table : tables)
    for (const Shard *shard : fixedOfTable[table])
      places.insert(shard->devices.begin(), shard->devices.end());
  std::vector<int> devices(places.begin(), places.end());
  for (int table : tables)
    if (!(context.rulesOf(table).fixed ? addRestOnEach(table, devices)
                                       : addOnEach(table, devices)))
      fail("co-located table '" + context.table(table).name +
               "' cannot be put on the " + std::to_string(devices.size()) +
               " devices on which the set has shards written by hand",
           "write the shards of the whole co-located set by hand");
}

/// The table, so that it is on each of the devices and nowhere else.
bool UnitMaker::addOnEach(int table, const std::vector<int> &devices) {
  const TableRules &rules = context.rulesOf(table);
  if (devices.size() == 1 && rules.allows(ShardingKind::TableWise)) {
    units.push_back(makeUnit(context, {whole(table)}, devices.front()));
    return true;
  }
  std::vector<int> places(std::max<size_t>(2, devices.size()), devices.front());
  std::copy(devices.begin(), devices.end(), places.begin());
  auto parts = partsOf(table, places);
  for (size_t i = 0; parts && i < parts->size(); ++i)
    for (const Shard &shard : (*parts)[i])
      units.push_back(makeUnit(context, {shard}, places[i]));
  bool everywhere = static_cast<int>(devices.size()) == context.deviceCount &&
                    rules.allows(ShardingKind::Replicated);
  return parts || (everywhere && addReplicas(table));
}

/// What is left of a table, so that it is on each of the devices.
bool UnitMaker::addRestOnEach(int table, const std::vector<int> &devices) {
  std::set<int> missing(devices.begin(), devices.end());
  for (const Shard *shard : fixedOfTable[table])
    for (int device : shard->devices)
      missing.erase(device);
  auto before = static_cast<std::ptrdiff_t>(units.size());
  addRest(table, fixedOfTable[table]);
  std::vector<UnitPtr> rest(units.begin() + before, units.end());
  units.erase(units.begin() + before, units.end());
  if (rest.empty())
    return missing.empty();
  // The largest pieces are cut until there is one for each device.
  while (rest.size() < missing.size()) {
    auto largest = std::max_element(rest.begin(), rest.end(),
                                    [](const UnitPtr &a, const UnitPtr &b) {
                                      return a->peakBytes() < b->peakBytes();
                                    });
    auto halves = betterCut(splitColumns(context, **largest, 2),
                            splitRows(context, **largest, 2));
    if (!halves)
      return false;
    *largest = halves->front();
    rest.push_back(halves->back());
  }
  std::vector<int> order(missing.begin(), missing.end());
  if (order.empty())
    order.push_back(devices.front());
  for (size_t i = 0; i < rest.size(); ++i)
    units.push_back(makeUnit(context, rest[i]->shards,
                             order[std::min(i, order.size() - 1)]));
  return true;
}

void UnitMaker::addCoLocated() {
  std::map<int, std::vector<int>> members;
  for (size_t i = 0; i < context.problem.tables.size(); ++i) {
    int leader = context.rulesOf(static_cast<int>(i)).coLocateLeader;
    if (leader >= 0)
      members[leader].push_back(static_cast<int>(i));
  }
  for (const auto &[leader, tables] : members) {
    if (anyFixed(tables)) {
      addAroundFixed(tables);
      continue;
    }
    if (!allMayStayWhole(tables)) {
      addCoLocatedParts(tables);
      continue;
    }
    std::vector<Shard> shards;
    for (int table : tables) {
      shards.push_back(whole(table));
    }
    units.push_back(makeUnit(context, std::move(shards)));
  }
}

tl::expected<std::vector<UnitPtr>, Diagnosis> UnitMaker::run() {
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

} // namespace

tl::expected<std::vector<UnitPtr>, Diagnosis>
neuroshard::initialUnits(const SearchContext &context) {
  return UnitMaker(context).run();
}
