//===- CoLocatedUnits.cpp - Units of tables that must stay together -------===//

#include "UnitMaker.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace neuroshard;

bool UnitMaker::anyFixed(const std::vector<int> &tables) const {
  return std::any_of(tables.begin(), tables.end(),
                     [&](int table) { return context.rulesOf(table).fixed; });
}

bool UnitMaker::allMayStayWhole(const std::vector<int> &tables) const {
  return std::all_of(tables.begin(), tables.end(), [&](int table) {
    return context.rulesOf(table).allows(ShardingKind::TableWise);
  });
}

/// The table cut for the devices of a group: a list of shards for each; nothing
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
  // Strips of columns, each cut into two by rows.
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

/// Adds a co-located set in which some tables must be cut: a part of each table
/// on every device of a group, or else all parts on one device.
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
  // Parts for two devices.
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

/// Adds the rest of a co-located set with shards written by hand: each table
/// goes to all devices of those shards.
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

/// Cuts the table so that each of the devices, and no other, holds a part.
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

/// Cuts the rest of a table so that each of the devices holds a part.
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
  // Cut the largest unit until there is one for each device.
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
