//===- Memory.cpp - Memory of a shard -------------------------------------===//
///
/// \file
/// Every formula of this folder is a row of docs/memory.md.
//===----------------------------------------------------------------------===//

#include "neuroshard/Planner/Memory.h"

#include "CacheMemory.h"
#include "CopyShares.h"
#include "ReplicaMemory.h"
#include "SpilledRows.h"
#include "StepBytes.h"
#include "UpdateMemory.h"
#include "neuroshard/Artifact/CopyMessage.h"
#include "neuroshard/Artifact/ReplicaUpdate.h"
#include "neuroshard/Model/LookupShares.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>

using namespace neuroshard;

namespace {

/// Software cache of TorchRec: bytes of bookkeeping per row of the table and
/// per slot.
constexpr int64_t kCacheRowBytes = 4;
constexpr int64_t kCacheSlotBytes = 16;

/// `width`: f32 elements of a row of state, as they lie in memory.
int64_t optimizerStateBytes(const Optimizer &optimizer, int64_t rows,
                            int64_t width) {
  OptimizerStates states = optimizerStates(optimizer);
  return 4 * rows * (states.perElement * width + states.perRow);
}

void addHostTier(const ShardingProblem &problem, const Table &table,
                 const Shard &shard, MemoryTerms &terms) {
  terms.hostBytes = terms.weightsBytes;
  terms.weightsBytes = 0;
  // States per row stay on the device.
  int64_t rowStates =
      4 * shard.rows() * optimizerStates(table.optimizer).perRow;
  terms.hostBytes += terms.optimizerStateBytes - rowStates;
  terms.optimizerStateBytes = rowStates;
  if (problem.cacheLoadFactor <= 0)
    return;
  int64_t wanted =
      ceilToInt(problem.cacheLoadFactor * static_cast<double>(shard.rows()));
  int64_t slots = roundUp(wanted, kCacheWays);
  terms.weightsBytes =
      slots * paddedRowBytes(shard.width(), table.elementType) +
      kCacheRowBytes * shard.rows() + kCacheSlotBytes * slots;
}

/// The rows of a shard in a lower tier, which has no arrays in device memory.
void addRecords(const Table &table, const Shard &shard, MemoryTerms &terms) {
  terms.weightsBytes = terms.optimizerStateBytes = 0;
  (shard.tier == Tier::Dram ? terms.hostBytes : terms.diskBytes) =
      shard.rows() * recordBytes(optimizerStates(table.optimizer),
                                 shard.width(), table.elementType);
}

/// What a copy takes for the sums that it exchanges with the others, each of
/// which has `rows` rows: its own, in f32 and in the messages to all, those
/// that it gets, and what updates by them.
int64_t copySumMemory(const ShardingProblem &problem, const Table &table,
                      const std::vector<int> &features, const Shard &shard,
                      int64_t rows) {
  auto copies = static_cast<int64_t>(shard.devices.size());
  CopyMessage message{
      static_cast<int32_t>(
          idBytes(packedIdType(problem, problem.tableIndex(table.name)))),
      shard.width(), rowSumFormat(problem.batch.wireType.gradients)};
  int64_t bytes = message.values(rows) * 4 + 2 * copies * message.bytes(rows);
  if (message.format != WireFormat::F32)
    bytes += copies * message.values(rows) * 4;
  if (!features.empty())
    bytes += updateBytes(
        problem, table, problem.features[static_cast<size_t>(features.front())],
        shard, copies * rows);
  return bytes;
}

/// The cache, with room for what does not fit into its sets of the rows that
/// the batches under way use, and where the rows of the ids lie in it. On GPUs
/// ids and places are also in pinned memory, half as many again as needed.
void addRowCache(const ShardingProblem &problem, const Table &table,
                 const std::vector<int> &features, const Shard &shard,
                 int64_t ids, MemoryTerms &terms) {
  int64_t copies = std::max<int64_t>(1, problem.batch.inputCopies);
  int64_t bytesOfIds =
      features.empty()
          ? 0
          : ids *
                idBytes(packedIdType(problem, problem.tableIndex(table.name)));
  terms.idsBytes += copies * bytesOfIds;
  if (engineOf(problem) == Engine::Cpu)
    terms.backwardBytes += idsOfUpdate(problem, ids) * idBytes(IdType::I64);
  else
    terms.hostBytes += 3 * bytesOfIds;
  int64_t underWay = copies + backwardsOfUpdate(problem) - 1;
  int64_t spilled =
      spilledRows(std::min(underWay * ids, shard.rows()), shard.cache.rows);
  CacheBytes cache =
      rowCacheBytes(problem, table, shard, shard.cache.rows + spilled);
  terms.weightsBytes += cache.device;
  terms.hostBytes += cache.host;
}

/// What ranks of the samples send of a feature to a cut shard beyond what
/// deviceBaseMemory() has: ids go to each range of columns, gradients of bags
/// to each range of rows. All ranks together send what is counted for owners.
int64_t packedAgain(const ShardingProblem &problem, const Table &table,
                    const Feature &feature, const Shard &shard, int64_t ids,
                    double shareOfRows) {
  double otherColumns =
      1 - static_cast<double>(shard.width()) / static_cast<double>(table.dim);
  int64_t bags =
      feature.pooling == Pooling::None ? 0 : featureBatch(problem, feature);
  IdType type = packedIdType(problem, feature.table);
  return ceilToInt(
      otherColumns * static_cast<double>(ids * idEntryBytes(type, feature)) +
      (1 - shareOfRows) *
          static_cast<double>(bags * rowBytes(problem.batch.wireType.gradients,
                                              shard.width())));
}

void addOwnerPhases(const ShardingProblem &problem, const Table &table,
                    const std::vector<int> &features, const Shard &shard,
                    bool norms, MemoryTerms &terms) {
  double share = lookupShareOfRows(table, shard.rowBegin, shard.rowEnd);
  bool rowSplit = shard.rows() != table.rows;
  ElementType result = rowSplit ? ElementType::F32 : problem.batch.outputType;
  WireType wire = problem.batch.wireType;
  int64_t width = shard.width();
  int64_t forwardBytes =
      width * elementBytes(result) + castRowBytes(result, wire.results, width);
  int64_t backwardBytes = width * elementBytes(result) +
                          castRowBytes(result, wire.gradients, width);
  int64_t allIds = 0;
  double batchShare = largestCopyShare(problem, shard);
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    int64_t samples = ceilToInt(
        static_cast<double>(featureBatch(problem, feature)) * batchShare);
    int64_t ids =
        ceilToInt(static_cast<double>(samples) * p99Pooling(feature) * share);
    int64_t results = resultRows(feature, samples, share);
    int64_t input = inputBytes(
        problem, feature, packedIdType(problem, feature.table), samples, share);
    terms.idsBytes += problem.batch.inputCopies * input;
    terms.forwardBytes += results * forwardBytes;
    terms.backwardBytes +=
        results * backwardBytes +
        updateBytes(problem, table, feature, shard, idsOfUpdate(problem, ids));
    addKept(problem,
            input + results * backwardBytes +
                packedAgain(problem, table, feature, shard, ids, share),
            terms);
    allIds += ids;
  }
  int64_t allRows = std::min(idsOfUpdate(problem, allIds), shard.rows());
  if (shard.hasCopies()) {
    auto copies = static_cast<int64_t>(shard.devices.size());
    if (!shard.copiesDrift())
      terms.backwardBytes +=
          copySumMemory(problem, table, features, shard, allRows);
    allRows = std::min(copies * allRows, shard.rows());
  }
  if (norms)
    terms.backwardBytes += allRows * reducedRowBytes(problem, table, shard);
  if (hasRowCache(problem.target, shard.tier))
    addRowCache(problem, table, features, shard, allIds, terms);
}

} // namespace

std::vector<std::vector<int>>
neuroshard::featuresOfTables(const ShardingProblem &problem) {
  std::vector<std::vector<int>> features(problem.tables.size());
  for (size_t i = 0; i < problem.features.size(); ++i)
    features[static_cast<size_t>(problem.features[i].table)].push_back(
        static_cast<int>(i));
  return features;
}

MemoryTerms neuroshard::shardMemory(const ShardingProblem &problem,
                                    const Table &table,
                                    const std::vector<int> &features,
                                    const Shard &shard, bool norms) {
  MemoryTerms terms;
  terms.weightsBytes =
      shard.rows() * paddedRowBytes(shard.width(), table.elementType);
  if (problem.memoryModel == MemoryModel::WeightsOnly) {
    if (shard.tier == Tier::Dram)
      std::swap(terms.hostBytes, terms.weightsBytes);
    if (shard.tier == Tier::Ssd)
      std::swap(terms.diskBytes, terms.weightsBytes);
    return terms;
  }
  terms.optimizerStateBytes = optimizerStateBytes(
      table.optimizer, shard.rows(), stateRowElements(problem, shard.width()));
  if (hasRowCache(problem.target, shard.tier))
    addRecords(table, shard, terms);
  else if (shard.tier == Tier::Dram)
    addHostTier(problem, table, shard, terms);
  if (isReplicated(table, shard, problem.topology.deviceCount()))
    addReplicaPhases(problem, table, features, shard, terms);
  else
    addOwnerPhases(problem, table, features, shard, norms, terms);
  if (problem.mode == StepMode::Inference)
    terms.backwardBytes = 0;
  return terms;
}

MemoryTerms neuroshard::shardMemory(const ShardingProblem &problem,
                                    const Table &table,
                                    const std::vector<int> &features,
                                    const Shard &shard) {
  bool norms =
      needsNormExchange(table, problem.optimizerSemantics, {&shard, 1});
  return shardMemory(problem, table, features, shard, norms);
}
