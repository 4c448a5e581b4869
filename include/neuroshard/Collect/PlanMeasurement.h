//===- PlanMeasurement.h - Predicted against measured plans -----*- C++ -*-===//

#ifndef NEUROSHARD_COLLECT_PLANMEASUREMENT_H
#define NEUROSHARD_COLLECT_PLANMEASUREMENT_H

#include "neuroshard/Collect/Measurement.h"
#include "neuroshard/Collect/TablePool.h"
#include "neuroshard/Planner/Search.h"

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace neuroshard {

/// A task of 10 to 40 tables of the pool (rows at most a million, so that every
/// device's set fits into this machine) on `devices` CPU devices whose memory
/// is 1.3 times what they need in the mean. Row-wise state is kept per shard
/// and nothing is replicated, so that each set can run alone.
ShardingProblem makePlanTask(const TablePool &pool, uint64_t seed, int devices);

/// A plan of a task with its predicted costs and measured times.
struct MeasuredPlan {
  int task = 0;
  int devices = 0;
  Algorithm algorithm = Algorithm::Default;
  CostBreakdown predicted;
  std::vector<ComputeMs> measured; ///< per device, at the usual speed.

  /// Largest forward + largest backward, ms.
  double predictedComputeMs() const;
  double measuredComputeMs() const;
  /// The predicted step with the measured compute in place of the predicted.
  double measuredCostMs() const;
};

struct PlanMeasurementOptions {
  int tasks = 30;
  std::vector<int> devices = {2, 4};
  uint64_t seed = 1;
  /// The policy of DreamShard, which is left out if this is null.
  const PlacementPolicy *policy = nullptr;
  MeasureOptions measure;
};

/// Plans every task with every algorithm and runs the devices' shard sets one
/// after another. An algorithm that finds no plan for a task is left out of it.
Expected<std::vector<MeasuredPlan>>
measurePlans(const PlanMeasurementOptions &options, const CostModel &model,
             const std::atomic<bool> &stop,
             const std::function<void(int done, int all)> &progress);

/// Spearman's rank correlation; ties get their mean rank.
double rankCorrelation(std::span<const double> a, std::span<const double> b);

/// Markdown: rank correlations of predicted and measured compute, over all
/// plans and in the mean over the tasks; each algorithm's measured cost against
/// the default search's, in the geometric mean.
std::string summarise(std::span<const MeasuredPlan> plans);
/// A JSON object, schema neuroshard.measured_plans.v1.
std::string toJson(std::span<const MeasuredPlan> plans,
                   const PlanMeasurementOptions &options,
                   const std::string &costModel);

} // namespace neuroshard

#endif // NEUROSHARD_COLLECT_PLANMEASUREMENT_H
