//===- Memory.cpp - Memory of a plan by device and host -------------------===//
///
/// \file
/// Every formula here is a row of docs/memory.md; keep them together.
//===----------------------------------------------------------------------===//

#include "neuroshard/Planner/Memory.h"

#include "CopyShares.h"
#include "ReplicaGradients.h"
#include "SpilledRows.h"
#include "UpdateMemory.h"
#include "neuroshard/Artifact/CopyMessage.h"
#include "neuroshard/Artifact/ReplicaUpdate.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

using namespace neuroshard;

namespace {

/// Software cache of TorchRec: bytes of bookkeeping per row of the table and
/// per slot.
constexpr int64_t kCacheRowBytes = 4;
constexpr int64_t kCacheSlotBytes = 16;
/// Largest bucket of a dense all-reduce.
constexpr int64_t kAllReduceBucketBytes = int64_t{25} << 20;

int64_t ceilToInt(double value) {
  return static_cast<int64_t>(std::ceil(value));
}

int64_t idEntryBytes(IdType type, const Feature &feature) {
  return idBytes(type) + (feature.weighted ? 4 : 0);
}

/// Where the ids of a sample begin; ours count in 8 bytes whatever the ids.
int64_t offsetBytes(const ShardingProblem &problem) {
  return problem.target == Target::TorchRec19 ? idBytes(problem.batch.idType)
                                              : idBytes(IdType::I64);
}

/// Ids and offsets of one feature for `samples` samples.
int64_t inputBytes(const ShardingProblem &problem, const Feature &feature,
                   IdType type, int64_t samples, double share) {
  int64_t ids =
      ceilToInt(static_cast<double>(samples) * p99Pooling(feature) * share);
  return ids * idEntryBytes(type, feature) + samples * offsetBytes(problem);
}

/// Rows of results one feature produces for `samples` samples.
int64_t resultRows(const Feature &feature, int64_t samples, double share) {
  if (feature.pooling != Pooling::None)
    return samples;
  return ceilToInt(static_cast<double>(samples) * p99Pooling(feature) * share);
}

/// `width`: f32 elements of a row of state, as they lie in memory.
int64_t optimizerStateBytes(OptimizerKind kind, int64_t rows, int64_t width) {
  OptimizerStates states = optimizerStates(kind);
  return 4 * rows * (states.perElement * width + states.perRow);
}

/// Local samples of a feature: the largest part of the batch any device has.
int64_t localSamples(const ShardingProblem &problem, const Feature &feature) {
  return ceilDivide(featureBatch(problem, feature),
                    std::max(1, problem.topology.deviceCount()));
}

void addHostTier(const ShardingProblem &problem, const Table &table,
                 const Shard &shard, MemoryTerms &terms) {
  terms.hostBytes = terms.weightsBytes;
  terms.weightsBytes = 0;
  // States per row stay on the device.
  int64_t rowStates =
      4 * shard.rows() * optimizerStates(table.optimizer.kind).perRow;
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

/// The row cache of a shard in a lower tier, in the place of its arrays.
void addRowCache(const Table &table, const Shard &shard, MemoryTerms &terms) {
  OptimizerStates states = optimizerStates(table.optimizer.kind);
  terms.weightsBytes = shard.cache.rows *
                       cachedRowBytes(states, shard.width(), table.elementType);
  terms.optimizerStateBytes = 0;
  (shard.tier == Tier::Dram ? terms.hostBytes : terms.diskBytes) =
      shard.rows() * recordBytes(states, shard.width(), table.elementType);
}

/// Ids of a feature in the largest step that is planned for.
int64_t mostIds(const Feature &feature, int64_t samples) {
  return ceilToInt(static_cast<double>(samples) * p99Pooling(feature));
}

/// Backwards that make an update; TorchRec updates in each.
int64_t backwardsOfUpdate(const ShardingProblem &problem) {
  return problem.target == Target::TorchRec19 ? 1 : problem.batch.backwards;
}

/// Ids of all backwards that make an update, `ids` of each.
int64_t idsOfUpdate(const ShardingProblem &problem, int64_t ids) {
  return backwardsOfUpdate(problem) * ids;
}

/// Adds what each backward but the last leaves until the update.
void addKept(const ShardingProblem &problem, int64_t bytesOfBackward,
             MemoryTerms &terms) {
  int64_t bytes = (backwardsOfUpdate(problem) - 1) * bytesOfBackward;
  terms.forwardBytes += bytes;
  terms.backwardBytes += bytes;
}

/// What each backward of a replica and its update take.
struct ReplicaMemory {
  int64_t ofBackward = 0;
  int64_t ofUpdate = 0;
};

/// Of one that gathers the ids and gradients of all devices.
ReplicaMemory gatheredMemory(const ShardingProblem &problem, const Table &table,
                             const std::vector<int> &features,
                             const Shard &shard) {
  ReplicaMemory memory;
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    int64_t samples = featureBatch(problem, feature);
    memory.ofBackward +=
        inputBytes(problem, feature, packedIdType(problem, feature.table),
                   samples, 1.0) +
        resultRows(feature, samples, 1.0) *
            rowBytes(problem.batch.wireType.gradients, table.dim);
    memory.ofUpdate +=
        updateBytes(problem, table, feature, shard,
                    idsOfUpdate(problem, mostIds(feature, samples)));
  }
  return memory;
}

/// Of one that adds gradients up by row: its own in f32, and the sums, a
/// section of those of all devices, and the totals.
ReplicaMemory rowSumMemory(const ShardingProblem &problem, const Table &table,
                           const std::vector<int> &features,
                           const Shard &shard) {
  ReplicaMemory memory;
  WireFormat format = rowSumFormat(problem.batch.wireType.gradients);
  int64_t sums = table.rows * (paddedColumns(table.dim) + 1);
  int64_t devices = std::max(1, problem.topology.deviceCount());
  memory.ofBackward =
      2 * sums * 4 + ceilDivide(sums, devices) * valueBytes(format);
  if (format != WireFormat::F32)
    memory.ofBackward += sums * valueBytes(format);
  // Between groups, messages to each peer of a group and to each group.
  const std::vector<TopologyLevel> &levels = problem.topology.levels;
  if (!levels.empty() && levels.back().groupSizes.size() > 1)
    memory.ofBackward += 2 * sums * valueBytes(format);
  if (engineOf(problem) == Engine::Cpu)
    memory.ofUpdate += (3 * table.rows + 1) * 8;
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    int64_t samples = localSamples(problem, feature);
    memory.ofBackward += resultRows(feature, samples, 1.0) * table.dim * 4;
    memory.ofUpdate +=
        updateBytes(problem, table, feature, shard,
                    idsOfUpdate(problem, mostIds(feature, samples)));
  }
  return memory;
}

/// Phases of a replica: results and ids are those of the device's own batch
/// (deviceBaseMemory).
void addReplicaPhases(const ShardingProblem &problem, const Table &table,
                      const std::vector<int> &features, const Shard &shard,
                      MemoryTerms &terms) {
  if (problem.target == Target::TorchRec19) {
    int64_t gradient = shard.rows() * shard.width() * 4;
    terms.backwardBytes += gradient + std::min(gradient, kAllReduceBucketBytes);
    return;
  }
  ReplicaMemory gathered = gatheredMemory(problem, table, features, shard);
  ReplicaGradients gradients =
      replicaGradients(problem, table, features, [&](const Feature &feature) {
        return mostIds(feature, featureBatch(problem, feature));
      });
  if (!gradients.areSummed) {
    terms.backwardBytes += gathered.ofBackward + gathered.ofUpdate;
    addKept(problem, gathered.ofBackward, terms);
    return;
  }
  // A step with fewer ids gathers as long as that is less.
  double share = static_cast<double>(rowSumBytes(
                     table.rows, table.dim, problem.batch.wireType.gradients)) /
                 static_cast<double>(gradients.gatheredBytes);
  ReplicaMemory summed = rowSumMemory(problem, table, features, shard);
  auto ofFewer = [&](int64_t bytes) {
    return ceilToInt(share * static_cast<double>(bytes));
  };
  terms.backwardBytes +=
      std::max(summed.ofBackward + summed.ofUpdate,
               ofFewer(gathered.ofBackward + gathered.ofUpdate));
  addKept(problem, std::max(summed.ofBackward, ofFewer(gathered.ofBackward)),
          terms);
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

/// Where the rows of the ids lie in the cache, and what does not fit into it of
/// the rows that the batches under way use.
void addCachePlaces(const ShardingProblem &problem, const Table &table,
                    const std::vector<int> &features, const Shard &shard,
                    int64_t ids, MemoryTerms &terms) {
  int64_t copies = std::max<int64_t>(1, problem.batch.inputCopies);
  if (!features.empty())
    terms.idsBytes +=
        copies * ids *
        idBytes(packedIdType(problem, problem.tableIndex(table.name)));
  if (engineOf(problem) == Engine::Cpu)
    terms.backwardBytes += idsOfUpdate(problem, ids) * idBytes(IdType::I64);
  int64_t underWay = copies + backwardsOfUpdate(problem) - 1;
  terms.weightsBytes +=
      spilledRows(std::min(underWay * ids, shard.rows()), shard.cache.rows) *
      cachedRowBytes(optimizerStates(table.optimizer.kind), shard.width(),
                     table.elementType);
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
  double share =
      static_cast<double>(shard.rows()) / static_cast<double>(table.rows);
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
    terms.backwardBytes +=
        copySumMemory(problem, table, features, shard, allRows);
    allRows = std::min(copies * allRows, shard.rows());
  }
  if (norms)
    terms.backwardBytes += allRows * reducedRowBytes(problem, table, shard);
  if (hasRowCache(problem.target, shard.tier))
    addCachePlaces(problem, table, features, shard, allIds, terms);
}

} // namespace

int64_t MemoryTerms::peakBytes() const {
  return weightsBytes + optimizerStateBytes + idsBytes +
         std::max(forwardBytes, backwardBytes) + communicatorBytes +
         denseReserveBytes + fragmentationReserveBytes;
}

MemoryTerms &MemoryTerms::operator+=(const MemoryTerms &other) {
  weightsBytes += other.weightsBytes;
  optimizerStateBytes += other.optimizerStateBytes;
  idsBytes += other.idsBytes;
  forwardBytes += other.forwardBytes;
  backwardBytes += other.backwardBytes;
  communicatorBytes += other.communicatorBytes;
  denseReserveBytes += other.denseReserveBytes;
  fragmentationReserveBytes += other.fragmentationReserveBytes;
  hostBytes += other.hostBytes;
  diskBytes += other.diskBytes;
  return *this;
}

MemoryTerms &MemoryTerms::operator-=(const MemoryTerms &other) {
  weightsBytes -= other.weightsBytes;
  optimizerStateBytes -= other.optimizerStateBytes;
  idsBytes -= other.idsBytes;
  forwardBytes -= other.forwardBytes;
  backwardBytes -= other.backwardBytes;
  communicatorBytes -= other.communicatorBytes;
  denseReserveBytes -= other.denseReserveBytes;
  fragmentationReserveBytes -= other.fragmentationReserveBytes;
  hostBytes -= other.hostBytes;
  diskBytes -= other.diskBytes;
  return *this;
}

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
  terms.optimizerStateBytes =
      optimizerStateBytes(table.optimizer.kind, shard.rows(),
                          stateRowElements(problem, shard.width()));
  if (hasRowCache(problem.target, shard.tier))
    addRowCache(table, shard, terms);
  else if (shard.tier == Tier::Dram)
    addHostTier(problem, table, shard, terms);
  if (isReplicated(table, shard, problem.topology.deviceCount()))
    addReplicaPhases(problem, table, features, shard, terms);
  else
    addOwnerPhases(problem, table, features, shard, norms, terms);
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

/// Ids and results of a device's part of the batch, alike on all.
static MemoryTerms batchMemory(const ShardingProblem &problem) {
  MemoryTerms terms;
  ElementType output = problem.batch.outputType;
  WireType wire = problem.batch.wireType;
  int64_t outputBytes = elementBytes(output);
  for (const Feature &feature : problem.features) {
    const Table &table = problem.tables[static_cast<size_t>(feature.table)];
    int64_t samples = localSamples(problem, feature);
    int64_t rows = resultRows(feature, samples, 1.0), dim = table.dim;
    int64_t input =
        inputBytes(problem, feature, problem.batch.idType, samples, 1.0);
    terms.idsBytes += problem.batch.inputCopies * input;
    addKept(problem, input + rows * rowBytes(wire.gradients, dim), terms);
    terms.forwardBytes +=
        rows * (dim * outputBytes + castRowBytes(output, wire.results, dim));
    terms.backwardBytes += rows * (2 * dim * outputBytes +
                                   castRowBytes(output, wire.gradients, dim));
  }
  return terms;
}

static void addReserves(const ShardingProblem &problem, const Device &device,
                        MemoryTerms &terms) {
  const DeviceClass *deviceClass = findDeviceClass(device.deviceClass);
  if (!deviceClass)
    return;
  const Reserves &wanted = problem.constraints.reserves;
  const Reserves &measured = device.reserves;
  auto choose = [&](std::optional<int64_t> Reserves::*which, int64_t usual) {
    return (wanted.*which).value_or((measured.*which).value_or(usual));
  };
  terms.denseReserveBytes =
      choose(&Reserves::denseBytes, deviceClass->denseReserveBytes);
  terms.fragmentationReserveBytes = choose(
      &Reserves::fragmentationBytes, deviceClass->fragmentationReserveBytes);
  // One device has no communicator, but what was measured is of its process.
  if (problem.topology.deviceCount() > 1 || measured.communicatorBytes)
    terms.communicatorBytes = choose(&Reserves::communicatorBytes,
                                     deviceClass->communicatorReserveBytes);
}

std::vector<MemoryTerms>
neuroshard::deviceBaseMemory(const ShardingProblem &problem) {
  const std::vector<Device> &devices = problem.topology.devices;
  if (problem.memoryModel == MemoryModel::WeightsOnly)
    return std::vector<MemoryTerms>(devices.size());
  std::vector<MemoryTerms> all(devices.size(), batchMemory(problem));
  for (size_t device = 0; device < devices.size(); ++device)
    addReserves(problem, devices[device], all[device]);
  return all;
}

int64_t neuroshard::columnPermuteBytes(const ShardingProblem &problem,
                                       const Table &table,
                                       const std::vector<int> &features) {
  if (problem.memoryModel == MemoryModel::WeightsOnly)
    return 0;
  int64_t bytes = 0;
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    int64_t samples = localSamples(problem, feature);
    bytes += resultRows(feature, samples, 1.0) * table.dim *
             elementBytes(problem.batch.outputType);
  }
  return bytes;
}

/// "44655" as "44,655".
static std::string withThousands(int64_t value) {
  std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return text;
}

std::string neuroshard::formatBytes(int64_t bytes) {
  static constexpr std::array<const char *, 4> kUnits = {"B", "KiB", "MiB",
                                                         "GiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; unit + 1 < kUnits.size() && std::abs(value) >= 1024; ++unit)
    value /= 1024;
  if (value >= 1000)
    return withThousands(std::llround(value)) + " " + kUnits[unit];
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value,
                kUnits[unit]);
  return text;
}
