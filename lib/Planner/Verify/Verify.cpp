//===- Verify.cpp - Every rule a plan must follow -------------------------===//

#include "neuroshard/Planner/Verify.h"

#include "VerifyTarget.h"
#include "neuroshard/Model/Coverage.h"
#include "neuroshard/Model/TableFingerprint.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/PlanMemory.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

using namespace neuroshard;

namespace {

class Verifier {
public:
  Verifier(const ShardingPlan &plan, const ShardingProblem &problem)
      : plan(plan), problem(problem),
        innerGroupOfDevice(groupOfDevices(problem.topology.levels.back())),
        shardsOfTable(problem.tables.size()),
        devicesOfTable(problem.tables.size()) {}

  Diagnostics run();

private:
  void error(const std::string &where, const std::string &message) {
    errors.push_back({where, message});
  }
  const std::string &tableName(int table) const {
    return problem.tables[static_cast<size_t>(table)].name;
  }
  void checkHeader();
  void checkShards();
  void checkTable(size_t index);
  void checkReplicas(const Table &table,
                     const std::vector<const Shard *> &shards);
  void checkMemory();
  void collectDevices();
  void checkPlaces();
  void checkSets();
  void checkTableConstraints();
  void checkFixedShards();

  const ShardingPlan &plan;
  const ShardingProblem &problem;
  std::vector<int> innerGroupOfDevice;
  std::vector<std::vector<const Shard *>> shardsOfTable;
  std::vector<std::set<int>> devicesOfTable;
  Diagnostics errors;
};

void Verifier::checkHeader() {
  int devices = problem.topology.deviceCount();
  if (plan.deviceCount != devices)
    error("plan", "made for " + std::to_string(plan.deviceCount) +
                      " devices, the topology has " + std::to_string(devices));
  if (plan.optimizerSemantics != problem.optimizerSemantics)
    error("plan", "optimizer_semantics is " +
                      std::string(toString(plan.optimizerSemantics)) +
                      ", the problem asks for " +
                      std::string(toString(problem.optimizerSemantics)));
  std::string fingerprint = tableFingerprint(problem.tables);
  if (!plan.fingerprint.empty() && plan.fingerprint != fingerprint)
    error("plan", "made for other tables: their fingerprint is " +
                      plan.fingerprint + ", that of the problem's tables is " +
                      fingerprint);
}

void Verifier::checkShards() {
  std::unordered_map<std::string_view, size_t> tableOfName;
  for (size_t i = 0; i < problem.tables.size(); ++i)
    tableOfName.emplace(problem.tables[i].name, i);
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < plan.shards.size(); ++i) {
    const Shard &shard = plan.shards[i];
    std::string where = shard.name.empty() ? "shards[" + std::to_string(i) + "]"
                                           : "shard '" + shard.name + "'";
    if (shard.name.empty())
      error(where, "a shard needs a name");
    else if (!names.insert(shard.name).second)
      error(where, "another shard has the same name");
    auto found = tableOfName.find(shard.table);
    if (found == tableOfName.end()) {
      error(where, "unknown table '" + shard.table + "'");
      continue;
    }
    checkShardShape(problem.tables[found->second], shard,
                    problem.topology.deviceCount(), where, errors);
    checkTier(problem, shard, where, errors);
    shardsOfTable[found->second].push_back(&shard);
  }
}

void Verifier::checkReplicas(const Table &table,
                             const std::vector<const Shard *> &shards) {
  if (problem.target == Target::Native)
    return;
  for (const Shard *shard : shards)
    checkReplica(table, *shard, problem.topology.deviceCount(),
                 "shard '" + shard->name + "'", errors);
}

void Verifier::checkTable(size_t index) {
  const Table &table = problem.tables[index];
  const std::vector<const Shard *> &shards = shardsOfTable[index];
  size_t before = errors.size();
  checkOverlap(table, shards, errors);
  if (errors.size() == before)
    checkGaps(table, shards, errors);
  if (errors.size() != before)
    return;
  checkReplicas(table, shards);
  checkRoutes(problem, index, shards, errors);
  checkSync(problem, index, shards, errors);
  verifyTarget(problem, table, shards, innerGroupOfDevice, errors);
}

void Verifier::checkMemory() {
  MemoryReport report = planMemory(problem, plan.shards);
  for (size_t i = 0; i < report.devices.size(); ++i) {
    const MemoryTerms &terms = report.devices[i];
    int64_t available = problem.topology.devices[i].memoryBytes;
    if (terms.peakBytes() <= available)
      continue;
    error("device " + std::to_string(i),
          "needs " + formatBytes(terms.peakBytes()) + " (weights " +
              formatBytes(terms.weightsBytes) + ", optimizer state " +
              formatBytes(terms.optimizerStateBytes) + ", ids " +
              formatBytes(terms.idsBytes) + ", activations and temporaries " +
              formatBytes(std::max(terms.forwardBytes, terms.backwardBytes)) +
              ", reserves " +
              formatBytes(terms.communicatorBytes + terms.denseReserveBytes +
                          terms.fragmentationReserveBytes) +
              "), has " + formatBytes(available));
  }
  for (size_t i = 0; i < report.hostBytes.size(); ++i)
    if (report.hostBytes[i] > problem.topology.hosts[i].memoryBytes)
      error("host " + std::to_string(i),
            "needs " + formatBytes(report.hostBytes[i]) + ", has " +
                formatBytes(problem.topology.hosts[i].memoryBytes));
  for (size_t i = 0; i < report.diskBytes.size(); ++i)
    if (int64_t room = problem.topology.hosts[i].disk.bytes;
        room > 0 && report.diskBytes[i] > room)
      error("host " + std::to_string(i),
            "needs " + formatBytes(report.diskBytes[i]) +
                " of disk for tier ssd, has " + formatBytes(room));
}

void Verifier::collectDevices() {
  for (size_t i = 0; i < shardsOfTable.size(); ++i)
    for (const Shard *shard : shardsOfTable[i])
      devicesOfTable[i].insert(shard->devices.begin(), shard->devices.end());
}

void Verifier::checkPlaces() {
  for (const PinConstraint &pin : problem.constraints.pins) {
    std::unordered_set<int> allowed(pin.devices.begin(), pin.devices.end());
    for (int device : devicesOfTable[static_cast<size_t>(pin.table)])
      if (!allowed.contains(device))
        error("table '" + tableName(pin.table) + "'",
              "a pin keeps it off device " + std::to_string(device) +
                  ", where it has a shard");
  }
  for (const ForbidConstraint &forbid : problem.constraints.forbids)
    for (int device : forbid.devices)
      if (devicesOfTable[static_cast<size_t>(forbid.table)].contains(device))
        error("table '" + tableName(forbid.table) + "'",
              "is forbidden on device " + std::to_string(device) +
                  ", where it has a shard");
}

void Verifier::checkSets() {
  for (const std::vector<int> &set : problem.constraints.coLocate)
    for (int table : set)
      if (devicesOfTable[static_cast<size_t>(table)] !=
          devicesOfTable[static_cast<size_t>(set.front())])
        error("table '" + tableName(table) + "'",
              "must be on the same devices as table '" +
                  tableName(set.front()) + "' (co-located)");
  for (const std::vector<int> &set : problem.constraints.separate) {
    std::unordered_map<int, int> tableOfDevice;
    for (int table : set)
      for (int device : devicesOfTable[static_cast<size_t>(table)]) {
        auto [found, inserted] = tableOfDevice.emplace(device, table);
        if (!inserted)
          error("table '" + tableName(table) + "'",
                "shares device " + std::to_string(device) + " with table '" +
                    tableName(found->second) + "', from which it is separated");
      }
  }
}

void Verifier::checkTableConstraints() {
  bool oneGroup = innerGroupOfDevice.back() == 0;
  for (const TableConstraint &constraint : problem.constraints.tables) {
    size_t index = static_cast<size_t>(constraint.table);
    const Table &table = problem.tables[index];
    for (const Shard *shard : shardsOfTable[index])
      if (Tier tier = cacheTier(problem.topology, constraint);
          constraint.cacheShare > 0 && shard->tier != tier)
        error("shard '" + shard->name + "'",
              "must be in tier " + std::string(toString(tier)) +
                  ", since its table has a cache_share, found tier " +
                  std::string(toString(shard->tier)));
    for (const Shard *shard : shardsOfTable[index])
      if (constraint.syncEvery > 0 && shard->hasCopies() &&
          shard->syncEvery != constraint.syncEvery)
        error("shard '" + shard->name + "'",
              "must have sync_every " + std::to_string(constraint.syncEvery) +
                  " as its table, since it has copies, got: " +
                  std::to_string(shard->syncEvery));
    int64_t minWidth = std::min(constraint.minWidth, table.dim);
    for (const Shard *shard : shardsOfTable[index])
      if (shard->width() < minWidth)
        error("shard '" + shard->name + "'",
              "width " + std::to_string(shard->width()) +
                  " is below the table's minimum of " +
                  std::to_string(minWidth));
    if (constraint.allowedKinds.empty())
      continue;
    ShardingKind kind =
        classify(table, shardsOfTable[index], innerGroupOfDevice);
    auto allows = [&](ShardingKind wanted) {
      return std::find(constraint.allowedKinds.begin(),
                       constraint.allowedKinds.end(),
                       wanted) != constraint.allowedKinds.end();
    };
    // Inside one group the two row-wise kinds are the same thing, but TorchRec
    // runs them apart; on a single device a whole table is of every kind.
    bool allowed =
        allows(kind) ||
        (kind == ShardingKind::TableWise && plan.deviceCount == 1) ||
        (kind == ShardingKind::TableRowWise && allows(ShardingKind::RowWise) &&
         (oneGroup || problem.target == Target::Native)) ||
        (kind == ShardingKind::RowWise && oneGroup &&
         allows(ShardingKind::TableRowWise));
    if (!allowed)
      error("table '" + table.name + "'",
            "is sharded " + std::string(toString(kind)) +
                ", which its allowed kinds do not include");
  }
}

void Verifier::checkFixedShards() {
  const std::vector<Shard> &fixed = problem.constraints.fixedShards;
  if (fixed.empty())
    return;
  std::unordered_map<std::string_view, const Shard *> shardOfName;
  for (const Shard &shard : plan.shards)
    shardOfName.emplace(shard.name, &shard);
  for (const Shard &shard : fixed) {
    auto found = shardOfName.find(shard.name);
    if (found == shardOfName.end() || !(*found->second == shard))
      error("shard '" + shard.name + "'",
            "was written by hand and must be in the plan as it is: table '" +
                shard.table + "', " + formatRange(shard));
  }
}

Diagnostics Verifier::run() {
  checkHeader();
  checkShards();
  if (!errors.empty())
    return std::move(errors);
  for (size_t i = 0; i < problem.tables.size(); ++i)
    checkTable(i);
  if (!errors.empty())
    return std::move(errors);
  collectDevices();
  checkMemory();
  checkPlaces();
  checkSets();
  checkTableConstraints();
  checkFixedShards();
  return std::move(errors);
}

} // namespace

Diagnostics neuroshard::verify(const ShardingPlan &plan,
                               const ShardingProblem &problem) {
  return Verifier(plan, problem).run();
}
