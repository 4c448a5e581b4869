//===- StepBytes.cpp - Ids and results of a step, for memory --------------===//

#include "StepBytes.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

int64_t neuroshard::ceilToInt(double value) {
  return static_cast<int64_t>(std::ceil(value));
}

int64_t neuroshard::idEntryBytes(IdType type, const Feature &feature) {
  return idBytes(type) + (feature.weighted ? 4 : 0);
}

/// Where the ids of a sample begin; ours count in 8 bytes whatever the ids.
static int64_t offsetBytes(const ShardingProblem &problem) {
  return problem.target == Target::TorchRec19 ? idBytes(problem.batch.idType)
                                              : idBytes(IdType::I64);
}

int64_t neuroshard::inputBytes(const ShardingProblem &problem,
                               const Feature &feature, IdType type,
                               int64_t samples, double share) {
  int64_t ids =
      ceilToInt(static_cast<double>(samples) * p99Pooling(feature) * share);
  return ids * idEntryBytes(type, feature) + samples * offsetBytes(problem);
}

int64_t neuroshard::resultRows(const Feature &feature, int64_t samples,
                               double share) {
  if (feature.pooling != Pooling::None)
    return samples;
  return ceilToInt(static_cast<double>(samples) * p99Pooling(feature) * share);
}

int64_t neuroshard::localSamples(const ShardingProblem &problem,
                                 const Feature &feature) {
  return ceilDivide(featureBatch(problem, feature),
                    std::max(1, problem.topology.deviceCount()));
}

int64_t neuroshard::mostIds(const Feature &feature, int64_t samples) {
  return ceilToInt(static_cast<double>(samples) * p99Pooling(feature));
}

int64_t neuroshard::backwardsOfUpdate(const ShardingProblem &problem) {
  return problem.target == Target::TorchRec19 ? 1 : problem.batch.backwards;
}

int64_t neuroshard::idsOfUpdate(const ShardingProblem &problem, int64_t ids) {
  return backwardsOfUpdate(problem) * ids;
}

void neuroshard::addKept(const ShardingProblem &problem,
                         int64_t bytesOfBackward, MemoryTerms &terms) {
  int64_t bytes = (backwardsOfUpdate(problem) - 1) * bytesOfBackward;
  terms.forwardBytes += bytes;
  terms.backwardBytes += bytes;
}
