//===- ReplicaMemory.cpp - Backward of replicated tables ------------------===//

#include "ReplicaMemory.h"

#include "ReplicaGradients.h"
#include "StepBytes.h"
#include "UpdateMemory.h"
#include "neuroshard/Artifact/ReplicaUpdate.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>

using namespace neuroshard;

namespace {

/// Largest bucket of a dense all-reduce.
constexpr int64_t kAllReduceBucketBytes = int64_t{25} << 20;

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

} // namespace

void neuroshard::addReplicaPhases(const ShardingProblem &problem,
                                  const Table &table,
                                  const std::vector<int> &features,
                                  const Shard &shard, MemoryTerms &terms) {
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
