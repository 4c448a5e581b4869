//===- CheckConstraints.cpp - Errors of the constraints of a problem ------===//

#include "CheckConstraints.h"

#include "FieldChecker.h"
#include "neuroshard/Model/Coverage.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/Limits.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

using namespace neuroshard;

namespace {

class ConstraintsChecker : public FieldChecker {
public:
  using FieldChecker::FieldChecker;

  void run();

private:
  void checkTableSets(const char *list,
                      const std::vector<std::vector<int>> &sets);
  void checkPlaces();
  void checkTableConstraints();
  void checkSyncEvery(const std::string &where,
                      const TableConstraint &constraint);
  void checkCacheTier(const std::string &where,
                      const TableConstraint &constraint);
  void checkFixedShards();
  void checkSetConflicts();
};

void ConstraintsChecker::checkTableSets(
    const char *list, const std::vector<std::vector<int>> &sets) {
  for (size_t i = 0; i < sets.size(); ++i) {
    std::string where = at(list, i);
    std::unordered_set<int> seen;
    if (sets[i].size() < 2)
      error(where, "expected at least two tables");
    for (int table : sets[i])
      if (wantTable(where, table) && !seen.insert(table).second)
        error(where, "table '" +
                         problem.tables[static_cast<size_t>(table)].name +
                         "' is listed twice");
  }
}

void ConstraintsChecker::checkPlaces() {
  const Constraints &constraints = problem.constraints;
  std::unordered_map<int, std::vector<bool>> allowed;
  size_t devices = problem.topology.devices.size();
  auto restrict = [&](int table, const std::vector<int> &listed, bool keep) {
    auto &mask = allowed.try_emplace(table, devices, true).first->second;
    std::vector<bool> in(devices);
    for (int device : listed)
      if (device >= 0 && static_cast<size_t>(device) < devices)
        in[static_cast<size_t>(device)] = true;
    for (size_t d = 0; d < devices; ++d)
      mask[d] = mask[d] && in[d] == keep;
  };
  for (size_t i = 0; i < constraints.pins.size(); ++i) {
    const PinConstraint &pin = constraints.pins[i];
    wantDevices(at("constraints.pins", i) + ".devices", pin.devices);
    if (wantTable(at("constraints.pins", i) + ".table", pin.table))
      restrict(pin.table, pin.devices, true);
  }
  for (size_t i = 0; i < constraints.forbids.size(); ++i) {
    const ForbidConstraint &forbid = constraints.forbids[i];
    wantDevices(at("constraints.forbids", i) + ".devices", forbid.devices);
    if (wantTable(at("constraints.forbids", i) + ".table", forbid.table))
      restrict(forbid.table, forbid.devices, false);
  }
  if (!errors.empty())
    return;
  for (size_t table = 0; table < problem.tables.size(); ++table) {
    auto found = allowed.find(static_cast<int>(table));
    if (found == allowed.end())
      continue;
    const std::vector<bool> &mask = found->second;
    if (std::find(mask.begin(), mask.end(), true) == mask.end())
      error("constraints",
            "pins and forbids of table '" + problem.tables[table].name +
                "' leave none of the " + std::to_string(devices) +
                " devices; relax one of them");
  }
}

void ConstraintsChecker::checkTableConstraints() {
  const auto &list = problem.constraints.tables;
  std::unordered_set<int> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string where = at("constraints.tables", i);
    if (wantTable(where + ".table", list[i].table) &&
        !seen.insert(list[i].table).second)
      error(where, "table '" +
                       problem.tables[static_cast<size_t>(list[i].table)].name +
                       "' has more than one entry");
    wantInteger(where + ".min_width", list[i].minWidth, 1, kMaxDim);
    wantNumber(where + ".cache_share", list[i].cacheShare, 0, 1);
    checkSyncEvery(where + ".sync_every", list[i]);
    checkCacheTier(where, list[i]);
  }
}

void ConstraintsChecker::checkSyncEvery(const std::string &where,
                                        const TableConstraint &constraint) {
  wantInteger(where, constraint.syncEvery, 0, kMaxSyncEvery);
  auto table = static_cast<size_t>(constraint.table);
  if (constraint.syncEvery <= 0 || table >= problem.tables.size())
    return;
  if (constraint.cacheShare > 0)
    error(where, "copies of a table below device memory cannot drift; leave "
                 "out cache_share or sync_every");
  if (std::string text = driftError(problem, table); !text.empty())
    error(where, text);
}

void ConstraintsChecker::checkCacheTier(const std::string &where,
                                        const TableConstraint &constraint) {
  if (constraint.tier == Tier::Hbm)
    return error(where + ".tier", "expected dram or ssd, got: hbm, in which no "
                                  "table has a cache");
  if (constraint.cacheShare <= 0) {
    if (constraint.tier)
      error(where + ".tier", "only a table with a cache_share above 0 is below "
                             "device memory; give one, or leave out the tier");
    return;
  }
  Tier tier = cacheTier(problem.topology, constraint);
  if (!runsTier(problem.target, tier))
    return error(where + ".cache_share", tierError(problem.target, tier));
  if (!hasRowCache(problem.target, tier))
    return error(where + ".cache_share",
                 "target " + std::string(toString(problem.target)) +
                     " sizes caches itself; give a cache_load_factor instead");
  for (int i = 0; tier == Tier::Dram && i < problem.topology.deviceCount(); ++i)
    if (std::string text = hostTierError(problem.topology, i); !text.empty())
      return error(where + ".tier", text);
}

void ConstraintsChecker::checkFixedShards() {
  const std::vector<Shard> &shards = problem.constraints.fixedShards;
  if (shards.empty())
    return;
  wantNames("constraints.fixed_shards", shards);
  std::unordered_map<std::string_view, size_t> tableOfName;
  for (size_t i = 0; i < problem.tables.size(); ++i)
    tableOfName.emplace(problem.tables[i].name, i);
  std::vector<std::vector<const Shard *>> ofTable(problem.tables.size());
  size_t before = errors.size();
  for (size_t i = 0; i < shards.size(); ++i) {
    std::string where = at("constraints.fixed_shards", i);
    auto found = tableOfName.find(shards[i].table);
    if (found == tableOfName.end()) {
      error(where + ".table", "unknown table '" + shards[i].table + "'");
      continue;
    }
    checkShardShape(problem.tables[found->second], shards[i],
                    problem.topology.deviceCount(), where, errors);
    checkReplica(problem.tables[found->second], shards[i],
                 problem.topology.deviceCount(), where + ".devices", errors);
    checkTier(problem, shards[i], where + ".tier", errors);
    ofTable[found->second].push_back(&shards[i]);
  }
  if (errors.size() != before)
    return;
  for (size_t i = 0; i < ofTable.size(); ++i) {
    checkOverlap(problem.tables[i], ofTable[i], errors);
    checkRoutes(problem, i, ofTable[i], errors);
    checkSync(problem, i, ofTable[i], errors);
  }
}

void ConstraintsChecker::checkSetConflicts() {
  const Constraints &constraints = problem.constraints;
  for (const std::vector<int> &together : constraints.coLocate) {
    std::unordered_set<int> members(together.begin(), together.end());
    for (const std::vector<int> &apart : constraints.separate) {
      std::vector<int> both;
      std::copy_if(apart.begin(), apart.end(), std::back_inserter(both),
                   [&](int table) { return members.contains(table); });
      if (both.size() < 2)
        continue;
      auto name = [&](int table) {
        return "'" + problem.tables[static_cast<size_t>(table)].name + "'";
      };
      error("constraints", "tables " + name(both[0]) + " and " + name(both[1]) +
                               " are to be both co-located and separated");
    }
  }
}

void ConstraintsChecker::run() {
  checkTableSets("constraints.co_locate", problem.constraints.coLocate);
  checkTableSets("constraints.separate", problem.constraints.separate);
  checkTableConstraints();
  std::ranges::move(check(problem.constraints.reserves, "constraints.reserves"),
                    std::back_inserter(errors));
  if (!errors.empty())
    return;
  checkSetConflicts();
  checkPlaces();
  checkFixedShards();
}

} // namespace

Tier neuroshard::cacheTier(const Topology &topology,
                           const TableConstraint &constraint) {
  bool hasCpus =
      std::ranges::any_of(topology.devices, [&](const Device &device) {
        return isCpu(topology, device);
      });
  return constraint.tier.value_or(hasCpus ? Tier::Ssd : Tier::Dram);
}

void neuroshard::checkConstraints(const ShardingProblem &problem,
                                  Diagnostics &errors) {
  ConstraintsChecker checker(problem);
  checker.errors = std::move(errors);
  checker.run();
  errors = std::move(checker.errors);
}
