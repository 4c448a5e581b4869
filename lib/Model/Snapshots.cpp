//===- Snapshots.cpp - Statistics of several periods ----------------------===//

#include "neuroshard/Model/ShardingProblem.h"

#include <algorithm>
#include <array>

using namespace neuroshard;

static void apply(const Snapshot &snapshot, ShardingProblem &problem) {
  for (const FeatureStatistics &statistics : snapshot.features) {
    Feature &feature =
        problem.features[static_cast<size_t>(statistics.feature)];
    feature.meanPooling = statistics.meanPooling;
    feature.p99Pooling = statistics.p99Pooling;
    feature.presence = statistics.presence;
  }
  for (const TableStatistics &statistics : snapshot.tables)
    problem.tables[static_cast<size_t>(statistics.table)].access =
        statistics.access;
}

/// A copy of everything else: with many snapshots they are nearly all of a
/// problem.
static ShardingProblem withoutSnapshots(const ShardingProblem &problem) {
  return {.source = problem.source,
          .tables = problem.tables,
          .features = problem.features,
          .snapshots = {},
          .batch = problem.batch,
          .topology = problem.topology,
          .constraints = problem.constraints,
          .mode = problem.mode,
          .memoryModel = problem.memoryModel,
          .target = problem.target,
          .optimizerSemantics = problem.optimizerSemantics,
          .cacheLoadFactor = problem.cacheLoadFactor};
}

ShardingProblem neuroshard::served(ShardingProblem problem) {
  problem.mode = StepMode::Inference;
  problem.batch.backwards = Batch().backwards;
  for (Table &table : problem.tables)
    table.optimizer = Optimizer();
  return problem;
}

ShardingProblem neuroshard::atSnapshot(const ShardingProblem &problem,
                                       size_t snapshot) {
  ShardingProblem result = withoutSnapshots(problem);
  apply(problem.snapshots[snapshot], result);
  return result;
}

std::vector<double> neuroshard::snapshotShares(const ShardingProblem &problem) {
  double total = 0;
  for (const Snapshot &snapshot : problem.snapshots)
    total += snapshot.weight;
  std::vector<double> shares;
  for (const Snapshot &snapshot : problem.snapshots)
    shares.push_back(snapshot.weight / total);
  return shares;
}

namespace {

/// Sums over the snapshots, weighted by their shares.
struct FeatureSums {
  double ids = 0;
  double presence = 0;
  double p99 = 0;
};

struct TableSums {
  std::array<double, kReuseBins> reuse = {};
  double share = 0;
  bool oneBatch = true;
  const AccessStatistics *heaviest = nullptr;
  double heaviestShare = 0;
};

} // namespace

static void add(const ShardingProblem &period, double share,
                std::vector<FeatureSums> &sums) {
  for (size_t i = 0; i < sums.size(); ++i) {
    const Feature &feature = period.features[i];
    sums[i].ids += share * feature.presence * feature.meanPooling;
    sums[i].presence += share * feature.presence;
    sums[i].p99 = std::max(sums[i].p99, p99Pooling(feature));
  }
}

static void add(const ShardingProblem &period, double share,
                std::vector<TableSums> &sums) {
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!period.tables[i].access)
      continue;
    const AccessStatistics &access = *period.tables[i].access;
    TableSums &sum = sums[i];
    sum.oneBatch =
        sum.oneBatch && (!sum.heaviest || sum.heaviest->batch == access.batch);
    sum.share += share;
    for (size_t bin = 0; bin < access.reuse.size(); ++bin)
      sum.reuse[bin] += share * access.reuse[bin];
    if (share > sum.heaviestShare) {
      sum.heaviest = &access;
      sum.heaviestShare = share;
    }
  }
}

/// The mean histogram; where they were measured at different batches there is
/// none, and the heaviest snapshot's stands for all.
static AccessStatistics meanAccess(const TableSums &sums) {
  AccessStatistics mean = *sums.heaviest;
  if (sums.oneBatch)
    for (size_t bin = 0; bin < mean.reuse.size(); ++bin)
      mean.reuse[bin] = sums.reuse[bin] / sums.share;
  return mean;
}

ShardingProblem neuroshard::summarized(const ShardingProblem &problem) {
  if (problem.snapshots.empty())
    return problem;
  std::vector<double> shares = snapshotShares(problem);
  std::vector<ShardingProblem> periods;
  std::vector<FeatureSums> features(problem.features.size());
  std::vector<TableSums> tables(problem.tables.size());
  for (size_t i = 0; i < problem.snapshots.size(); ++i)
    periods.push_back(atSnapshot(problem, i));
  for (size_t i = 0; i < periods.size(); ++i) {
    add(periods[i], shares[i], features);
    add(periods[i], shares[i], tables);
  }
  ShardingProblem result = withoutSnapshots(problem);
  for (size_t i = 0; i < features.size(); ++i) {
    const FeatureSums &sums = features[i];
    Feature &feature = result.features[i];
    feature.presence = std::min(1.0, sums.presence);
    feature.meanPooling = sums.presence > 0 ? sums.ids / sums.presence : 0;
    feature.p99Pooling =
        std::max(sums.p99, feature.meanPooling * feature.presence);
  }
  for (size_t i = 0; i < tables.size(); ++i)
    if (tables[i].heaviest)
      result.tables[i].access = meanAccess(tables[i]);
  return result;
}
