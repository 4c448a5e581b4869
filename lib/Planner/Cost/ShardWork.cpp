//===- ShardWork.cpp - Cost features of a shard ---------------------------===//

#include "neuroshard/Planner/ShardWork.h"

#include "DistinctRows.h"
#include "Memory/CopyShares.h"
#include "Memory/ReplicaGradients.h"
#include "RelayGroups.h"
#include "RowDemands.h"
#include "RowUses.h"
#include "neuroshard/Artifact/CopyMessage.h"
#include "neuroshard/Artifact/ReplicaUpdate.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/Memory.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

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
    sums.pooling += feature.presence * feature.meanPooling;
    sums.lookups += lookupsOf(problem, feature);
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
      ids += lookupsOf(problem, feature);
  }
  return ids;
}

/// How often the memory of row sums is read or written: cleared, added to,
/// added up over ranks, copied from there, and read by the update.
constexpr double kRowSumPasses = 6;

/// Whether copies of a table exchange sums of rows in an average step, or ids
/// and gradients.
bool updatesByRowSums(const ShardingProblem &problem, const Table &table,
                      const std::vector<int> &features) {
  // TorchRec all-reduces the gradient of the whole table.
  if (problem.target == Target::TorchRec19)
    return true;
  return replicaGradients(problem, table, features,
                          [&](const Feature &feature) {
                            return std::llround(lookupsOf(problem, feature));
                          })
      .areSummed;
}

} // namespace

double neuroshard::distinctRowsOf(const ShardingProblem &problem, int table,
                                  const std::vector<int> &features,
                                  double batchShare) {
  return distinctRowsOf(problem, table, features, batchShare, 0,
                        problem.tables[static_cast<size_t>(table)].rows);
}

double neuroshard::distinctRowsOf(const ShardingProblem &problem, int table,
                                  const std::vector<int> &features,
                                  double batchShare, int64_t rowBegin,
                                  int64_t rowEnd) {
  const Table &source = problem.tables[static_cast<size_t>(table)];
  double lookups = sumFeatures(problem, features).lookups * batchShare;
  double batch = static_cast<double>(problem.batch.globalSize) * batchShare;
  return std::min(
      static_cast<double>(rowEnd - rowBegin),
      distinctRows(source, lookups, batch) *
          shareOfRows(source, rowBegin, rowEnd, lookups, batch).distinct);
}

ShardWork neuroshard::describeShard(const ShardingProblem &problem, int table,
                                    const std::vector<int> &features,
                                    const Shard &shard, bool norms,
                                    RowDemands *demands) {
  const Table &source = problem.tables[static_cast<size_t>(table)];
  // All serve as much.
  if (shard.copiesDrift() &&
      isWholeOnAll(source, shard, problem.topology.deviceCount()))
    return describeCopies(problem, table, features, shard, norms).front();
  FeatureSums sums = sumFeatures(problem, features);
  bool replicated = isReplicated(source, shard, problem.topology.deviceCount());
  double batch = static_cast<double>(problem.batch.globalSize);
  RowsShare part =
      shareOfRows(source, shard.rowBegin, shard.rowEnd, sums.lookups, batch);
  double batchShare =
      replicated ? 1.0 / static_cast<double>(shard.devices.size()) : 1.0;
  double width = static_cast<double>(shard.width());
  double unique = distinctRows(source, sums.lookups, batch);

  ShardWork work;
  work.table = table;
  work.rows = shard.rows();
  work.width = shard.width();
  work.tableRows = source.rows;
  work.tableDim = source.dim;
  work.elementType = source.elementType;
  work.outputType = problem.batch.outputType;
  work.optimizer = source.optimizer.kind;
  work.pooling = sums.pooling * part.lookups * batchShare;
  work.features = static_cast<int>(features.size());
  work.lookups = sums.lookups * part.lookups * batchShare;
  work.outputRows =
      (sums.resultRows + unpooledIds(problem, features) * part.lookups) *
      batchShare;
  work.updateLookups = sums.lookups * part.lookups;
  work.updateUniqueRows =
      std::min(unique * part.distinct, static_cast<double>(shard.rows()));
  work.uniqueRows = replicated
                        ? distinctRows(source, work.lookups, batch * batchShare)
                        : work.updateUniqueRows;
  work.catchesUp = source.optimizer.catchUp;
  work.updateGradientRows =
      replicated ? work.outputRows / batchShare : work.outputRows;
  if (shard.tier == Tier::Dram && !hasRowCache(problem.target, shard.tier)) {
    double cached = problem.cacheLoadFactor;
    work.hostRows =
        missedRows(source, cached, shard.rows(), work.lookups, work.uniqueRows);
    work.hostUpdateRows = missedRows(source, cached, shard.rows(),
                                     work.updateLookups, work.updateUniqueRows);
  }
  if (hasRowCache(problem.target, shard.tier)) {
    work.cacheUse =
        demands
            ? demands->of(table).use(shard.rowBegin, shard.rowEnd, shard.cache)
            : rowDemandOf(problem, table, features)
                  .use(shard.rowBegin, shard.rowEnd, shard.cache);
    work.fetch = fetchOf(shard.tier, work.cacheUse.misses(),
                         recordBytes(optimizerStates(source.optimizer),
                                     shard.width(), source.elementType),
                         problem.mode);
  }
  work.idBytes = idBytes(packedIdType(problem, table));
  work.weighted = sums.weighted;
  work.rowSplit = shard.rows() != source.rows;
  work.columnSplit = shard.width() != source.dim;
  work.replicated = replicated;
  work.exactNorms = norms;
  work.access = source.access ? &*source.access : nullptr;

  double idEntry = static_cast<double>(work.idBytes) + (sums.weighted ? 4 : 0);
  WireType wire = problem.batch.wireType;
  auto bytesOf = [&](double resultRows, WireFormat format) {
    return resultRows * static_cast<double>(rowBytes(format, shard.width()));
  };
  if (replicated && updatesByRowSums(problem, source, features)) {
    // Its own gradients, and sums of all rows.
    auto rows = static_cast<double>(source.rows);
    work.updateLookups = work.lookups + unique;
    work.updateGradientRows = work.outputRows + kRowSumPasses * rows;
    work.backwardBytes = work.rowSumBytes = static_cast<double>(
        rowSumBytes(source.rows, source.dim, wire.gradients));
    // Our engine sends the first sums with gradients.
    work.lateSumBytes =
        work.rowSumBytes / (problem.target == Target::Native ? 2 : 1);
    return work;
  }
  if (replicated) {
    // Every replica receives all gradients and ids.
    work.backwardBytes = bytesOf(work.updateGradientRows, wire.gradients) +
                         work.updateLookups * idEntry;
    return work;
  }
  if (problem.target == Target::TorchRec19)
    work.exchangedForm = work.rowSplit      ? ShardWork::Form::Rows
                         : work.columnSplit ? ShardWork::Form::Columns
                                            : ShardWork::Form::Whole;
  work.dims = width * static_cast<double>(work.features);
  // Ids, and a length of 4 bytes per bag; ours sends those of pooled features.
  double lengths =
      problem.target == Target::Native ? sums.resultRows : sums.bags;
  work.inputBytes = work.lookups * idEntry + lengths * 4;
  work.groupInputBytes = relayGroupSize(problem) > 0 ? work.inputBytes : 0;
  work.forwardBytes = bytesOf(work.outputRows, wire.results);
  work.backwardBytes = bytesOf(work.outputRows, wire.gradients);
  // The norms of each distinct row, sent and received.
  if (work.exactNorms)
    work.normBytes = 2.0 * 4 *
                     static_cast<double>(normsPerRow(source.optimizer.kind)) *
                     work.uniqueRows;
  work.backwardBytes += work.normBytes;
  return work;
}

/// How often the sums of a copy's rows are read or written: added up, packed,
/// copied from messages, and read by the update.
static constexpr double kCopySumPasses = 4;

/// How often the rows of a copy are read or written when copies are averaged:
/// packed, added up, copied for the others, and written back.
static constexpr double kAveragePasses = 6;

/// What an average of copies that drift adds to a copy.
static void addAverage(const ShardingProblem &problem, const Shard &shard,
                       const CopyShare &share, ShardWork &work) {
  const Table &table = problem.tables[static_cast<size_t>(work.table)];
  OptimizerStates states = optimizerStates(table.optimizer);
  auto rows = static_cast<double>(work.rows);
  work.averagesPerStep = 1.0 / static_cast<double>(shard.syncEvery);
  // Parts to the others, and averages from them.
  work.averageBytes = 2 * rows *
                      static_cast<double>(rowArrayBytes(states, work.width,
                                                        table.elementType)) *
                      (share.copies - 1) / share.copies;
  work.insideCopies = share.insideCopies;
  work.updateGradientRows += kAveragePasses * rows *
                             static_cast<double>(1 + states.perElement) *
                             work.averagesPerStep;
}

std::vector<ShardWork>
neuroshard::describeCopies(const ShardingProblem &problem, int table,
                           const std::vector<int> &features, const Shard &shard,
                           bool norms) {
  Shard alone = shard;
  alone.devices.resize(1);
  alone.syncEvery = 0;
  const ShardWork whole = describeShard(problem, table, features, alone, norms);
  std::vector<CopyShare> shares = copyShares(problem, shard);
  std::vector<double> rows;
  double allRows = 0;
  for (const CopyShare &share : shares) {
    rows.push_back(distinctRowsOf(problem, table, features, share.batch,
                                  shard.rowBegin, shard.rowEnd));
    allRows += rows.back();
  }
  CopyMessage message{static_cast<int32_t>(whole.idBytes), whole.width,
                      rowSumFormat(problem.batch.wireType.gradients)};
  std::vector<ShardWork> works;
  for (size_t i = 0; i < shares.size(); ++i) {
    const CopyShare &share = shares[i];
    ShardWork &work = works.emplace_back(whole);
    for (double ShardWork::*part :
         {&ShardWork::pooling, &ShardWork::lookups, &ShardWork::outputRows,
          &ShardWork::dims, &ShardWork::inputBytes, &ShardWork::groupInputBytes,
          &ShardWork::forwardBytes})
      work.*part *= share.batch;
    work.groupInputBytes *= 1 - share.insideReaders;
    if (!share.isForOthers)
      work.dims = work.inputBytes = work.groupInputBytes = work.forwardBytes =
          0;
    work.uniqueRows = rows[i];
    double gradients =
        share.isForOthers
            ? (whole.backwardBytes - whole.normBytes) * share.batch
            : 0;
    if (shard.copiesDrift()) {
      work.updateLookups = work.lookups;
      work.updateGradientRows = work.outputRows;
      work.updateUniqueRows = rows[i];
      work.backwardBytes = gradients;
      work.insideForwardBytes = work.forwardBytes * share.insideReaders;
      work.insideGradientBytes = work.backwardBytes * share.insideReaders;
      addAverage(problem, shard, share, work);
      continue;
    }
    work.updateLookups = work.lookups + allRows;
    work.updateGradientRows = work.outputRows + kCopySumPasses * allRows;
    work.insideForwardBytes = work.forwardBytes * share.insideReaders;
    work.insideGradientBytes = gradients * share.insideReaders;
    // To each other copy its own; from each as many on average.
    work.copySumBytes =
        static_cast<double>(message.bytes(std::llround(allRows))) *
        (share.copies - 1) / share.copies;
    work.insideCopies = share.insideCopies;
    work.backwardBytes = gradients + work.copySumBytes + work.normBytes;
  }
  return works;
}

ShardWork neuroshard::describeShard(const ShardingProblem &problem, int table,
                                    const std::vector<int> &features,
                                    const Shard &shard) {
  return describeShard(
      problem, table, features, shard,
      needsNormExchange(problem.tables[static_cast<size_t>(table)],
                        problem.optimizerSemantics, {&shard, 1}));
}
