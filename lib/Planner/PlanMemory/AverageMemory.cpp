//===- AverageMemory.cpp - Messages of copies that drift ------------------===//

#include "AverageMemory.h"

#include "Cost/DriftingTables.h"
#include "neuroshard/Artifact/CopyAverages.h"
#include "neuroshard/Model/RowCache.h"
#include "neuroshard/Planner/Traffic.h"

#include <algorithm>

using namespace neuroshard;

/// Messages of an average: one sent and one received.
static constexpr int64_t kMessages = 2;

static bool haveAverages(const ShardingProblem &problem) {
  return problem.mode != StepMode::Inference &&
         problem.memoryModel != MemoryModel::WeightsOnly;
}

void neuroshard::addAverageMessages(const ShardingProblem &problem,
                                    std::span<const Shard> shards,
                                    std::vector<MemoryTerms> &devices) {
  if (!haveAverages(problem) ||
      std::ranges::none_of(shards, &Shard::copiesDrift))
    return;
  std::vector<int64_t> sent = averageMessages(exchangePlan(problem, shards));
  for (size_t device = 0; device < devices.size(); ++device)
    devices[device].backwardBytes += kMessages * sent[device];
}

int64_t neuroshard::roomForAverages(const ShardingProblem &problem) {
  if (!haveAverages(problem))
    return 0;
  int64_t devices = problem.topology.deviceCount();
  std::vector<bool> mayDrift = tablesThatMayDrift(problem);
  int64_t all = 0, rounding = 0;
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    const Table &table = problem.tables[i];
    if (!mayDrift[i])
      continue;
    // Cuts by columns pad rows; parts are rounded up to a few rows.
    int64_t rowBytes = 2 * rowArrayBytes(optimizerStates(table.optimizer),
                                         table.dim, table.elementType);
    all += table.rows * rowBytes;
    rounding += kRowsOfAverage * devices * rowBytes;
  }
  // Parts for the copies that average them, and its own average for all.
  int64_t message = 2 * std::min(all, kAverageRoundBytes) + rounding;
  return kMessages * message;
}
