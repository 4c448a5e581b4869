//===- TableRules.cpp - Devices and cuts that a table may have ------------===//

#include "TableRules.h"

#include "TargetRules.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <unordered_set>

using namespace neuroshard;

namespace {

/// Restricts `rule` to the listed devices, or to the others.
void restrictDevices(TableRules &rule, const std::vector<int> &listed,
                     bool keep, int deviceCount) {
  size_t devices = static_cast<size_t>(deviceCount);
  rule.devices.resize(devices, true);
  std::vector<bool> in(devices);
  for (int device : listed)
    in[static_cast<size_t>(device)] = true;
  for (size_t d = 0; d < devices; ++d)
    rule.devices[d] = rule.devices[d] && in[d] == keep;
}

/// Allows the kinds listed, and those that are the same on this topology.
void allowKinds(const ShardingProblem &problem,
                const std::vector<ShardingKind> &kinds, TableRules &rule) {
  rule.kindsListed = true;
  rule.allowed.fill(false);
  for (ShardingKind kind : kinds)
    rule.allowed[static_cast<size_t>(kind)] = true;
  auto also = [&](ShardingKind kind, bool allowed) {
    bool &entry = rule.allowed[static_cast<size_t>(kind)];
    entry = entry || allowed;
  };
  // Native: row-wise inside one group is row-wise, too, and the reverse holds
  // where there is one group alone. On a single device a table is whole.
  bool oneGroup = problem.topology.levels.back().groupSizes.size() == 1;
  also(ShardingKind::TableRowWise,
       (oneGroup || problem.target == Target::Native) &&
           rule.allows(ShardingKind::RowWise));
  also(ShardingKind::RowWise,
       oneGroup && rule.allows(ShardingKind::TableRowWise));
  also(ShardingKind::TableWise, problem.topology.deviceCount() == 1);
}

/// Forbids the kinds that the target or the optimizer cannot run.
void restrictKinds(const ShardingProblem &problem, int index,
                   TableRules &rule) {
  const Table &table = problem.tables[static_cast<size_t>(index)];
  bool exactRows =
      needsNormExchange(table.optimizer.kind, problem.optimizerSemantics, true);
  rule.exactRows = exactRows;
  auto forbid = [&](ShardingKind kind) {
    rule.allowed[static_cast<size_t>(kind)] = false;
  };
  if (problem.target == Target::TorchRec19) {
    TargetCuts cuts = torchRecCuts(problem, index, rule.minWidth);
    std::ranges::for_each(cuts.forbidden, forbid);
    rule.minWidth = cuts.minWidth;
  }
  if (rule.cacheShare > 0)
    forbid(ShardingKind::Replicated);
}

void joinCoLocatedSets(const std::vector<std::vector<int>> &sets,
                       std::vector<TableRules> &rules) {
  std::vector<int> leader(rules.size());
  std::iota(leader.begin(), leader.end(), 0);
  auto find = [&](int table) {
    while (leader[static_cast<size_t>(table)] != table)
      table = leader[static_cast<size_t>(table)];
    return table;
  };
  for (const std::vector<int> &set : sets)
    for (int table : set) {
      int a = find(set.front()), b = find(table);
      leader[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
    }
  for (const std::vector<int> &set : sets)
    for (int table : set)
      rules[static_cast<size_t>(table)].coLocateLeader = find(table);
}

/// Notes the tables with shards written by hand, and those that they or the
/// plan in use cut by columns.
void noteGivenShards(const ShardingProblem &problem,
                     std::span<const Shard> previous,
                     std::vector<TableRules> &rules) {
  const std::vector<Shard> &fixed = problem.constraints.fixedShards;
  std::unordered_set<std::string_view> written;
  for (const Shard &shard : fixed)
    written.insert(shard.table);
  for (size_t i = 0; i < rules.size(); ++i)
    rules[i].fixed = written.contains(problem.tables[i].name);
  for (std::span<const Shard> shards : {std::span(fixed), previous}) {
    std::vector<bool> split = columnSplitTables(problem.tables, shards);
    for (size_t i = 0; i < rules.size(); ++i)
      rules[i].columnsCutBefore = rules[i].columnsCutBefore || split[i];
  }
}

} // namespace

void neuroshard::followRules(const TableRules &rules, Shard &shard) {
  shard.syncEvery = shard.hasCopies() ? rules.syncEvery : 0;
  if (rules.cacheShare <= 0)
    return;
  auto rows = static_cast<int64_t>(
      std::ceil(rules.cacheShare * static_cast<double>(shard.rows())));
  shard.tier = rules.tier;
  shard.cache = {std::max(kCacheWays, roundUp(rows, kCacheWays)),
                 CachePolicy::Lru};
}

std::vector<TableRules>
neuroshard::tableRules(const ShardingProblem &problem,
                       std::span<const Shard> previous) {
  const Constraints &constraints = problem.constraints;
  int deviceCount = problem.topology.deviceCount();
  std::vector<TableRules> rules(problem.tables.size());
  auto ruleOf = [&](int table) -> TableRules & {
    return rules[static_cast<size_t>(table)];
  };
  for (const PinConstraint &pin : constraints.pins)
    restrictDevices(ruleOf(pin.table), pin.devices, true, deviceCount);
  for (const ForbidConstraint &forbid : constraints.forbids)
    restrictDevices(ruleOf(forbid.table), forbid.devices, false, deviceCount);
  for (const TableConstraint &constraint : constraints.tables) {
    ruleOf(constraint.table).minWidth = constraint.minWidth;
    ruleOf(constraint.table).cacheShare = constraint.cacheShare;
    ruleOf(constraint.table).syncEvery = constraint.syncEvery;
    if (constraint.cacheShare > 0)
      ruleOf(constraint.table).tier = cacheTier(problem.topology, constraint);
    if (!constraint.allowedKinds.empty())
      allowKinds(problem, constraint.allowedKinds, ruleOf(constraint.table));
  }
  for (size_t i = 0; i < constraints.separate.size(); ++i)
    for (int table : constraints.separate[i])
      ruleOf(table).separateSets.push_back(static_cast<int>(i));
  noteGivenShards(problem, previous, rules);
  for (size_t i = 0; i < rules.size(); ++i)
    restrictKinds(problem, static_cast<int>(i), rules[i]);
  joinCoLocatedSets(constraints.coLocate, rules);
  return rules;
}
