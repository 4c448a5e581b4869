//===- CheckProblem.cpp - Reports all errors of a problem -----------------===//

#include "neuroshard/Model/Coverage.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/Limits.h"
#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Support/ShortestText.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

using namespace neuroshard;

namespace {

std::string at(const char *list, size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

class Checker {
public:
  explicit Checker(const ShardingProblem &problem) : problem(problem) {}

  void checkTables();
  void checkFeatures();
  void checkSnapshots();
  void checkBatch();
  void checkSums();
  void checkConstraints();

  Diagnostics errors;

private:
  void error(const std::string &where, const std::string &message) {
    errors.push_back({where, message});
  }
  void wantInteger(const std::string &where, int64_t value, int64_t low,
                   int64_t high) {
    if (value < low || value > high)
      error(where, "expected a whole number in [" + std::to_string(low) + ", " +
                       std::to_string(high) +
                       "], got: " + std::to_string(value));
  }
  void wantNumber(const std::string &where, double value, double low,
                  double high) {
    if (!(value >= low && value <= high))
      error(where, "expected a number in [" + shortestText(low) + ", " +
                       shortestText(high) + "], got: " + shortestText(value));
  }
  bool wantTable(const std::string &where, int table) {
    bool known = table >= 0 && table < static_cast<int>(problem.tables.size());
    if (!known)
      error(where, "expected the index of one of the " +
                       std::to_string(problem.tables.size()) +
                       " tables, got: " + std::to_string(table));
    return known;
  }
  void wantDevices(const std::string &where, const std::vector<int> &devices) {
    if (devices.empty())
      error(where, "expected at least one device");
    for (int device : devices)
      if (device < 0 || device >= problem.topology.deviceCount())
        error(where, "expected devices in [0, " +
                         std::to_string(problem.topology.deviceCount()) +
                         "), got: " + std::to_string(device));
  }
  template <typename List> void wantNames(const char *list, const List &items);
  void checkOptimizer(const std::string &where, const Table &table);
  void checkAccess(const std::string &where, const AccessStatistics &access);
  template <typename Statistics>
  void checkPooling(const std::string &where, const Statistics &statistics);
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

  const ShardingProblem &problem;
};

template <typename List>
void Checker::wantNames(const char *list, const List &items) {
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < items.size(); ++i) {
    std::string where = at(list, i) + ".name";
    if (items[i].name.empty())
      error(where, "expected a name, got an empty text");
    else if (!seen.insert(items[i].name).second)
      error(where,
            "names must be unique, '" + items[i].name + "' is used before");
  }
}

void Checker::checkOptimizer(const std::string &where, const Table &table) {
  constexpr double kLargest = 1e30;
  const Optimizer &optimizer = table.optimizer;
  wantNumber(where + ".eps", optimizer.eps, 0, kLargest);
  wantNumber(where + ".initial_accumulator", optimizer.initialAccumulator, 0,
             kLargest);
  wantNumber(where + ".weight_decay", optimizer.weightDecay, 0, kLargest);
  wantNumber(where + ".l1_penalty", optimizer.l1Penalty, 0, kLargest);
  wantNumber(where + ".l2_penalty", optimizer.l2Penalty, 0, kLargest);
  wantNumber(where + ".eta", optimizer.eta, 0, kLargest);
  wantNumber(where + ".counter_halflife", optimizer.counterHalflife, -2,
             kLargest);
  wantNumber(where + ".adjustment_iter", optimizer.adjustmentIter, -1,
             kLargest);
  wantNumber(where + ".adjustment_ub", optimizer.adjustmentUb, 0, kLargest);
  wantNumber(where + ".max_gradient", optimizer.maxGradient, 0, kLargest);
  for (auto [name, beta] : {std::pair(".beta1", optimizer.beta1),
                            std::pair(".beta2", optimizer.beta2)})
    if (!(beta >= 0 && beta < 1))
      error(where + name,
            "expected a number in [0, 1), got: " + shortestText(beta));
  if (std::optional<SettingError> found =
          settingError(optimizer, table.elementType))
    error(where + "." + found->setting, found->message);
}

void Checker::checkAccess(const std::string &where,
                          const AccessStatistics &access) {
  double sum = 0;
  for (size_t i = 0; i < access.reuse.size(); ++i) {
    wantNumber(where + ".reuse[" + std::to_string(i) + "]", access.reuse[i], 0,
               1);
    sum += access.reuse[i];
  }
  if (std::isfinite(sum) && std::abs(sum - 1) > kHistogramTolerance)
    error(where + ".reuse",
          "the shares must add up to 1, got: " + shortestText(sum));
  wantInteger(where + ".batch", access.batch, 1, kMaxBatch);
  RowMassQuantile last;
  for (size_t i = 0; i < access.rowMass.size(); ++i) {
    const RowMassQuantile &point = access.rowMass[i];
    std::string place = where + ".row_mass[" + std::to_string(i) + "]";
    wantNumber(place + ".row_share", point.rowShare, 0, 1);
    wantNumber(place + ".lookup_share", point.lookupShare, 0, 1);
    if (point.rowShare < last.rowShare || point.lookupShare < last.lookupShare)
      error(place, "both shares must ascend from one point to the next");
    last = point;
  }
}

void Checker::checkTables() {
  if (problem.tables.empty())
    error("tables", "expected at least one table");
  wantNames("tables", problem.tables);
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    const Table &table = problem.tables[i];
    std::string where = at("tables", i);
    wantInteger(where + ".rows", table.rows, 1, kMaxRows);
    wantInteger(where + ".dim", table.dim, 1, kMaxDim);
    checkOptimizer(where + ".optimizer", table);
    if (problem.mode == StepMode::Inference && table.optimizer != Optimizer())
      error(where + ".optimizer",
            "mode inference trains no table: leave the optimizer away");
    else if (isQuantized(table.elementType) && table.optimizer != Optimizer())
      error(where + ".optimizer",
            "a table of " + std::string(toString(table.elementType)) +
                " is served and not trained: leave the optimizer away");
    wantInteger(where + ".id_candidates", table.idCandidates, 0, kMaxRows);
    if (table.idCandidates > 0 && !table.dynamicIds)
      error(where + ".id_candidates",
            "they are of dynamic ids: set dynamic_ids, or leave them away");
    if (table.dynamicIds && problem.target != Target::Native)
      error(where + ".dynamic_ids", "only the target native has them");
    if (table.dynamicIds && problem.batch.idType != IdType::I64)
      error(where + ".dynamic_ids", "they are of 64 bits: expected "
                                    "batch.id_type i64");
    if (table.access)
      checkAccess(where + ".access", *table.access);
  }
}

/// Checks the statistics of a Feature or a FeatureStatistics.
template <typename Statistics>
void Checker::checkPooling(const std::string &where,
                           const Statistics &statistics) {
  wantNumber(where + ".mean_pooling", statistics.meanPooling, 0, kMaxPooling);
  wantNumber(where + ".p99_pooling", statistics.p99Pooling, 0, kMaxPooling);
  wantNumber(where + ".presence", statistics.presence, 0, 1);
  double mean = statistics.meanPooling * statistics.presence;
  if (statistics.p99Pooling > 0 && statistics.p99Pooling < mean)
    error(where + ".p99_pooling",
          "expected at least mean_pooling x presence = " + shortestText(mean) +
              ", got: " + shortestText(statistics.p99Pooling));
}

void Checker::checkFeatures() {
  wantNames("features", problem.features);
  for (size_t i = 0; i < problem.features.size(); ++i) {
    const Feature &feature = problem.features[i];
    std::string where = at("features", i);
    wantTable(where + ".table", feature.table);
    checkPooling(where, feature);
    wantInteger(where + ".batch", feature.batch, 0, kMaxBatch);
    if (feature.needsWeightGradient && !feature.weighted)
      error(where + ".needs_weight_gradient",
            "only a weighted feature can need gradients of its weights");
  }
}

void Checker::checkSnapshots() {
  if (problem.snapshots.size() > kMaxSnapshots)
    return error("snapshots",
                 "expected at most " + std::to_string(kMaxSnapshots) +
                     ", got: " + std::to_string(problem.snapshots.size()) +
                     "; merge periods that are alike into one and add up "
                     "their weights");
  wantNames("snapshots", problem.snapshots);
  for (size_t i = 0; i < problem.snapshots.size(); ++i) {
    const Snapshot &snapshot = problem.snapshots[i];
    std::string where = at("snapshots", i);
    if (!(snapshot.weight > 0 && snapshot.weight <= kMaxWeight))
      error(where + ".weight", "expected a number above 0 and at most " +
                                   shortestText(kMaxWeight) +
                                   ", got: " + shortestText(snapshot.weight));
    std::unordered_set<int> seen;
    for (size_t j = 0; j < snapshot.features.size(); ++j) {
      const FeatureStatistics &statistics = snapshot.features[j];
      std::string place = where + "." + at("features", j);
      int count = static_cast<int>(problem.features.size());
      if (statistics.feature < 0 || statistics.feature >= count)
        error(place + ".feature",
              "unknown feature number " + std::to_string(statistics.feature));
      else if (!seen.insert(statistics.feature).second)
        error(place + ".feature", "listed twice");
      checkPooling(place, statistics);
    }
    seen.clear();
    for (size_t j = 0; j < snapshot.tables.size(); ++j) {
      const TableStatistics &statistics = snapshot.tables[j];
      std::string place = where + "." + at("tables", j);
      if (wantTable(place + ".table", statistics.table) &&
          !seen.insert(statistics.table).second)
        error(place + ".table", "listed twice");
      checkAccess(place + ".access", statistics.access);
    }
  }
}

void Checker::checkBatch() {
  wantInteger("batch.global_size", problem.batch.globalSize, 1, kMaxBatch);
  wantInteger("batch.input_copies", problem.batch.inputCopies, 1,
              kMaxInputCopies);
  wantInteger("batch.backwards", problem.batch.backwards, 1, kMaxBackwards);
  if (problem.mode == StepMode::Inference && problem.batch.backwards != 1)
    error("batch.backwards", "mode inference has none: leave it away");
  if (isQuantized(problem.batch.outputType))
    error("batch.output_type",
          "expected f32, f16 or bf16, got: " +
              std::string(toString(problem.batch.outputType)));
  wantNumber("cache_load_factor", problem.cacheLoadFactor, 0, 1);
}

/// Requires that the other checks pass.
void Checker::checkSums() {
  double stored = 0;
  for (const Table &table : problem.tables)
    stored += static_cast<double>(table.rows) *
              static_cast<double>(table.dim + 4) * 12;
  if (stored > kMaxTotalBytes)
    error("tables", "all tables together are too large to count: about " +
                        shortestText(stored) + " bytes with optimizer state");
  double moved = 0;
  for (const Feature &feature : problem.features) {
    double batch = static_cast<double>(featureBatch(problem, feature));
    double rows =
        batch * (feature.pooling == Pooling::None ? p99Pooling(feature) : 1.0);
    const Table &table = problem.tables[static_cast<size_t>(feature.table)];
    moved += batch * (p99Pooling(feature) + 1) * 256 +
             rows * static_cast<double>(table.dim) * 16;
  }
  moved *= problem.batch.backwards;
  if (moved > kMaxBatchBytes)
    error("features",
          "the batches of an update are too large to count: about " +
              shortestText(moved) + " bytes of ids and results");
}

void Checker::checkTableSets(const char *list,
                             const std::vector<std::vector<int>> &sets) {
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

void Checker::checkPlaces() {
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

void Checker::checkTableConstraints() {
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

void Checker::checkSyncEvery(const std::string &where,
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

void Checker::checkCacheTier(const std::string &where,
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

void Checker::checkFixedShards() {
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

void Checker::checkSetConflicts() {
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

void Checker::checkConstraints() {
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

int ShardingProblem::tableIndex(std::string_view name) const {
  for (size_t i = 0; i < tables.size(); ++i)
    if (tables[i].name == name)
      return static_cast<int>(i);
  return -1;
}

Diagnostics neuroshard::checkWorkload(const ShardingProblem &problem) {
  Checker checker(problem);
  checker.checkTables();
  checker.checkFeatures();
  checker.checkSnapshots();
  checker.checkBatch();
  if (!checker.errors.empty() || problem.snapshots.empty()) {
    if (checker.errors.empty())
      checker.checkSums();
    return std::move(checker.errors);
  }
  ShardingProblem worst = summarized(problem);
  Checker sums(worst);
  sums.checkSums();
  return std::move(sums.errors);
}

Diagnostics neuroshard::check(const ShardingProblem &problem) {
  Diagnostics errors = checkWorkload(problem);
  Diagnostics topologyErrors = check(problem.topology);
  errors.insert(errors.end(), topologyErrors.begin(), topologyErrors.end());
  Checker checker(problem);
  checker.errors = std::move(errors);
  checker.checkConstraints();
  return std::move(checker.errors);
}
