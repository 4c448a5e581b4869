//===- CheckProblem.cpp - Reports all errors of a problem -----------------===//

#include "CheckConstraints.h"
#include "FieldChecker.h"
#include "neuroshard/Model/Limits.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

using namespace neuroshard;

namespace {

class Checker : public FieldChecker {
public:
  using FieldChecker::FieldChecker;

  void checkTables();
  void checkFeatures();
  void checkSnapshots();
  void checkBatch();
  void checkSums();

private:
  void checkOptimizer(const std::string &where, const Table &table);
  void checkAccess(const std::string &where, const AccessStatistics &access);
  void checkRowOrder(const std::string &where, const Table &table,
                     const AccessStatistics &access);
  template <typename Statistics>
  void checkPooling(const std::string &where, const Statistics &statistics);
};

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
  wantNumber(where + ".adjustment_iter", optimizer.adjustmentIter, -kLargest,
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
  if (access.rowsByUse && access.rowMass.empty())
    error(where + ".rows_by_use",
          "nothing says how many lookups the first rows get: add row_mass, "
          "which 'neuroshard profile' measures, or leave rows_by_use away");
}

/// Rows that a hash or the order of their first use gives to ids are in no
/// order of use.
void Checker::checkRowOrder(const std::string &where, const Table &table,
                            const AccessStatistics &access) {
  if (access.rowsByUse && (table.hashed || table.dynamicIds))
    error(where + ".rows_by_use",
          std::string("rows of a table with ") +
              (table.hashed ? "hashed" : "dynamic") +
              " ids are in no order of use: leave it away");
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
    if (table.optimizer.catchUp && table.dynamicIds)
      error(where + ".optimizer.catch_up",
            "rows that ids come to begin anew and have missed no steps; leave "
            "it out with dynamic_ids");
    if (table.optimizer.catchUp && problem.target != Target::Native)
      error(where + ".optimizer.catch_up", "only the target native has it");
    if (table.access) {
      checkAccess(where + ".access", *table.access);
      checkRowOrder(where + ".access", table, *table.access);
    }
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
      if (wantTable(place + ".table", statistics.table)) {
        if (!seen.insert(statistics.table).second)
          error(place + ".table", "listed twice");
        checkRowOrder(place + ".access",
                      problem.tables[static_cast<size_t>(statistics.table)],
                      statistics.access);
      }
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

} // namespace

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
  checkConstraints(problem, errors);
  return errors;
}
