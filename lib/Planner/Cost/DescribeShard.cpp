//===- DescribeShard.cpp - Features of a shard for cost models ------------===//

#include "neuroshard/Planner/CostModel.h"
#include "neuroshard/Planner/Memory.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

/// What an id of a reuse bin is seen, in the mean: the middle of the bin.
double meanReuse(int bin) {
  ReuseRange range = reuseRange(static_cast<size_t>(bin));
  return 0.5 * static_cast<double>(range.least + range.most);
}

/// Lookups per distinct id in a batch of `share` of the one the statistics are
/// of. A smaller batch is a random part of it: an id seen m times is still seen
/// with probability 1 - (1 - share)^m. In a larger one the repeats beyond the
/// first grow in proportion.
double expectedReuse(const AccessStatistics &access, double share) {
  double lookups = 0, distinct = 0;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    double ids = access.reuse[static_cast<size_t>(bin)];
    lookups += ids * meanReuse(bin);
    distinct += share < 1
                    ? -ids * std::expm1(meanReuse(bin) * std::log1p(-share))
                    : ids;
  }
  if (share < 1)
    return std::max(1.0, share * lookups / distinct);
  return 1 + (std::max(1.0, lookups) - 1) * share;
}

/// Distinct rows that `lookups` reads of a table touch. Without a histogram:
/// ids uniform over the rows.
double expectedUnique(const Table &table, double lookups, double batch) {
  double rows = static_cast<double>(table.rows);
  if (!table.access)
    return -rows * std::expm1(-lookups / rows);
  double share = batch / static_cast<double>(table.access->batch);
  return std::min(rows, lookups / expectedReuse(*table.access, share));
}

/// Share of the lookups that the hottest `rowShare` of the rows get: along the
/// curve of the statistics; without one every row gets as many.
double lookupShareOf(const Table &table, double rowShare) {
  if (!table.access || table.access->rowMass.empty())
    return rowShare;
  RowMassQuantile before;
  for (const RowMassQuantile &point : table.access->rowMass) {
    if (point.rowShare >= rowShare && point.rowShare > before.rowShare)
      return before.lookupShare + (rowShare - before.rowShare) /
                                      (point.rowShare - before.rowShare) *
                                      (point.lookupShare - before.lookupShare);
    before = point;
  }
  if (before.rowShare >= 1)
    return 1;
  return before.lookupShare + (rowShare - before.rowShare) /
                                  (1 - before.rowShare) *
                                  (1 - before.lookupShare);
}

/// Distinct rows that a cache of the hottest `cached` of the rows misses. Where
/// rows differ, each missing lookup fetches at most one row.
double missingRows(const Table &table, double cached, int64_t rows,
                   double lookups, double unique) {
  if (!table.access || table.access->rowMass.empty())
    return unique * (1 - cached);
  return std::min({unique, lookups * (1 - lookupShareOf(table, cached)),
                   static_cast<double>(rows) * (1 - cached)});
}

/// What the features of a table add up to, per global batch.
struct FeatureSums {
  double pooling = 0;
  double lookups = 0;
  double bags = 0;
  double resultRows = 0;
  bool weighted = false;
};

FeatureSums sumFeatures(const ShardingProblem &problem,
                        const std::vector<int> &features) {
  FeatureSums sums;
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    double batch = static_cast<double>(featureBatch(problem, feature));
    double ids = batch * feature.presence * feature.meanPooling;
    sums.pooling += feature.presence * feature.meanPooling;
    sums.lookups += ids;
    sums.bags += batch;
    sums.resultRows += feature.pooling == Pooling::None ? 0 : batch;
    sums.weighted = sums.weighted || feature.weighted;
  }
  return sums;
}

/// Ids of the unpooled features: their results shrink with the rows held.
double unpooledIds(const ShardingProblem &problem,
                   const std::vector<int> &features) {
  double ids = 0;
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    if (feature.pooling == Pooling::None)
      ids += static_cast<double>(featureBatch(problem, feature)) *
             feature.presence * feature.meanPooling;
  }
  return ids;
}

} // namespace

ShardWork neuroshard::describeShard(const ShardingProblem &problem, int table,
                                    const std::vector<int> &features,
                                    const Shard &shard, bool norms) {
  const Table &source = problem.tables[static_cast<size_t>(table)];
  FeatureSums sums = sumFeatures(problem, features);
  bool replicated = shard.replicated();
  double rowShare =
      static_cast<double>(shard.rows()) / static_cast<double>(source.rows);
  double batchShare =
      replicated ? 1.0 / static_cast<double>(shard.devices.size()) : 1.0;
  double width = static_cast<double>(shard.width());
  double batch = static_cast<double>(problem.batch.globalSize);
  double unique = expectedUnique(source, sums.lookups, batch);

  ShardWork work;
  work.table = table;
  work.rows = shard.rows();
  work.width = shard.width();
  work.tableRows = source.rows;
  work.tableDim = source.dim;
  work.elementType = source.elementType;
  work.outputType = problem.batch.outputType;
  work.optimizer = source.optimizer.kind;
  work.pooling = sums.pooling * rowShare * batchShare;
  work.features = static_cast<int>(features.size());
  work.lookups = sums.lookups * rowShare * batchShare;
  work.outputRows =
      (sums.resultRows + unpooledIds(problem, features) * rowShare) *
      batchShare;
  work.uniqueRows =
      replicated ? expectedUnique(source, work.lookups, batch * batchShare)
                 : unique * rowShare;
  work.updateLookups = sums.lookups * rowShare;
  work.updateUniqueRows = unique * rowShare;
  work.updateGradientRows =
      replicated ? work.outputRows / batchShare : work.outputRows;
  if (shard.tier == Tier::Dram) {
    double cached = problem.cacheLoadFactor;
    work.hostRows = missingRows(source, cached, shard.rows(), work.lookups,
                                work.uniqueRows);
    work.hostUpdateRows =
        missingRows(source, cached, shard.rows(), work.updateLookups,
                    work.updateUniqueRows);
  }
  work.idBytes = idBytes(problem.batch.idType);
  work.weighted = sums.weighted;
  work.rowSplit = shard.rows() != source.rows;
  work.columnSplit = shard.width() != source.dim;
  work.replicated = replicated;
  work.exactNorms = norms;
  work.access = source.access ? &*source.access : nullptr;

  double idEntry = static_cast<double>(work.idBytes) + (sums.weighted ? 4 : 0);
  double wire = static_cast<double>(elementBytes(problem.batch.wireType));
  if (replicated) {
    // Every replica receives all gradients and ids.
    work.backwardBytes =
        work.updateGradientRows * width * wire + work.updateLookups * idEntry;
    return work;
  }
  work.dims = width * static_cast<double>(work.features);
  // Ids, and a length of 4 bytes per bag.
  work.inputBytes = work.lookups * idEntry + sums.bags * 4;
  work.forwardBytes = work.outputRows * width * wire;
  work.backwardBytes = work.outputRows * width * wire;
  // One squared norm per distinct row, sent and received.
  if (work.exactNorms)
    work.backwardBytes += 2 * 4 * work.uniqueRows;
  return work;
}

ShardWork neuroshard::describeShard(const ShardingProblem &problem, int table,
                                    const std::vector<int> &features,
                                    const Shard &shard) {
  return describeShard(
      problem, table, features, shard,
      exchangesNorms(problem.tables[static_cast<size_t>(table)],
                     problem.optimizerSemantics, {&shard, 1}));
}
