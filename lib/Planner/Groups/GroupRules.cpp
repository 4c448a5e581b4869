//===- GroupRules.cpp - Rules about devices, over groups of them ----------===//

#include "GroupRules.h"

#include <algorithm>
#include <map>

using namespace neuroshard;

namespace {

/// Whether the table is co-located with others, or separate from them.
bool hasSets(const TableRules &rules) {
  return rules.coLocateLeader >= 0 || !rules.separateSets.empty();
}

/// Places whole parts on devices of their groups, each where the fewest are.
class DeviceChoice {
public:
  DeviceChoice(const SearchContext &context, int groupSize)
      : context(context), groupSize(groupSize),
        partsOn(static_cast<size_t>(context.deviceCount)) {}

  std::optional<int> deviceFor(int table, int group) {
    const TableRules &rules = context.rulesOf(table);
    std::optional<int> best;
    auto together = devices.find({rules.coLocateLeader, group});
    if (rules.coLocateLeader >= 0 && together != devices.end())
      best = together->second;
    for (int d = group * groupSize; !best && d < (group + 1) * groupSize; ++d)
      if (mayHold(table, d))
        best = d;
    if (!best || !mayHold(table, *best))
      return std::nullopt;
    if (rules.coLocateLeader < 0)
      for (int d = *best; d < (group + 1) * groupSize; ++d)
        if (mayHold(table, d) && partsAt(d) < partsAt(*best))
          best = d;
    devices[{rules.coLocateLeader, group}] = *best;
    for (int set : rules.separateSets)
      taken[{set, *best}] = table;
    ++partsOn[static_cast<size_t>(*best)];
    return best;
  }

private:
  int partsAt(int device) const { return partsOn[static_cast<size_t>(device)]; }

  bool mayHold(int table, int device) const {
    const TableRules &rules = context.rulesOf(table);
    return rules.allowsDevice(device) &&
           std::ranges::none_of(rules.separateSets, [&](int set) {
             auto found = taken.find({set, device});
             return found != taken.end() && found->second != table;
           });
  }

  const SearchContext &context;
  int groupSize;
  std::vector<int> partsOn;
  std::map<std::pair<int, int>, int> devices; ///< by leader and group.
  std::map<std::pair<int, int>, int> taken;   ///< table by set and device.
};

} // namespace

void GroupRules::restrictGroups(Constraints &outer) const {
  outer.pins.clear();
  outer.forbids.clear();
  outer.separate.clear(); // A group has room for several.
  int tables = static_cast<int>(context.problem.tables.size());
  for (int table = 0; table < tables; ++table) {
    const TableRules &rules = context.rulesOf(table);
    if (rules.devices.empty() && !hasSets(rules))
      continue;
    PinConstraint pin{table, {}};
    for (int group = 0; group < context.deviceCount / groupSize; ++group)
      for (int d = group * groupSize; d < (group + 1) * groupSize; ++d)
        if (rules.allowsDevice(d)) {
          pin.devices.push_back(group);
          break;
        }
    outer.pins.push_back(std::move(pin));
    auto given =
        std::ranges::find(outer.tables, table, &TableConstraint::table);
    if (given == outer.tables.end())
      given = outer.tables.insert(outer.tables.end(), {.table = table});
    std::vector<ShardingKind> kinds;
    for (ShardingKind kind : {ShardingKind::TableWise, ShardingKind::ColumnWise,
                              ShardingKind::RowWise, ShardingKind::RowColumn})
      if (rules.allows(kind))
        kinds.push_back(kind);
    if (given->allowedKinds.empty() && !kinds.empty())
      given->allowedKinds = std::move(kinds);
    if (given->allowedKinds.size() > 1)
      std::erase(given->allowedKinds, ShardingKind::Replicated);
  }
}

void GroupRules::restrictInside(int group, std::span<const int> sources,
                                Constraints &inner) const {
  const Constraints &given = context.problem.constraints;
  inner.pins.clear();
  inner.forbids.clear();
  inner.coLocate.clear();
  inner.separate.clear();
  auto partsOf = [&](const std::vector<int> &tables) {
    std::vector<int> parts;
    for (size_t i = 0; i < sources.size(); ++i)
      if (std::ranges::find(tables, sources[i]) != tables.end())
        parts.push_back(static_cast<int>(i));
    return parts;
  };
  for (const std::vector<int> &set : given.coLocate)
    if (std::vector<int> parts = partsOf(set); parts.size() > 1)
      inner.coLocate.push_back(std::move(parts));
  for (const std::vector<int> &set : given.separate) // parts of two tables
    for (size_t a = 0; a < set.size(); ++a)
      for (size_t b = a + 1; b < set.size(); ++b)
        for (int one : partsOf({set[a]}))
          for (int other : partsOf({set[b]}))
            inner.separate.push_back({one, other});
  for (size_t i = 0; i < sources.size(); ++i) {
    const TableRules &rules = context.rulesOf(sources[i]);
    if (rules.devices.empty())
      continue;
    PinConstraint pin{static_cast<int>(i), {}};
    for (int d = 0; d < groupSize; ++d)
      if (rules.allowsDevice(group * groupSize + d))
        pin.devices.push_back(d);
    if (static_cast<int>(pin.devices.size()) < groupSize)
      inner.pins.push_back(std::move(pin));
  }
}

bool GroupRules::placeWhole(std::vector<Shard> &parts,
                            ShardingPlan &plan) const {
  DeviceChoice choice(context, groupSize);
  std::vector<Shard> others;
  for (Shard &part : parts) {
    int table = context.tableIndex(part.table);
    if (!hasSets(context.rulesOf(table))) {
      others.push_back(std::move(part));
      continue;
    }
    std::optional<int> device = choice.deviceFor(table, part.devices.front());
    if (!device)
      return false;
    plan.shards.push_back(std::move(part));
    plan.shards.back().devices = {*device};
    plan.shards.back().name.clear();
  }
  parts = std::move(others);
  return true;
}
