//===- Objective.h - Cost of a step from compute and exchanges --*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_OBJECTIVE_H
#define NEUROSHARD_PLANNER_OBJECTIVE_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/CostModel.h"
#include "neuroshard/Planner/DeviceLoad.h"
#include "neuroshard/Planner/SearchDefaults.h"

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// Published: max over devices of compute + backward + forward communication
/// (the paper's). Step: the time of a training step, see docs/planner.md.
enum class ObjectiveKind { Published, Step };

std::string_view toString(ObjectiveKind kind);
std::optional<ObjectiveKind> parseObjectiveKind(std::string_view text);

/// See SearchOptions.def.
struct ObjectiveOptions {
  ObjectiveKind kind = ObjectiveKind::Step;
  double denseBottomMs = search_defaults::denseBottomMs;
  double denseRestMs = search_defaults::denseRestMs;
  int pipelineDepth = search_defaults::pipelineDepth;
};

struct DeviceCost {
  ComputeMs compute;
  double inputMs = 0;
  double forwardCommunicationMs = 0;
  double backwardCommunicationMs = 0;
  /// Rows from lower tiers, whatever runs meanwhile.
  double fetchMs = 0;
  /// Bytes that the device sends to others and receives from them per step, as
  /// its artifact will: planDeviceTraffic(). Results; gradients and norms. For
  /// target torchrec-1.9 those that the cost is computed from.
  double forwardBytes = 0;
  double backwardBytes = 0;
};

/// Cost under one snapshot of the statistics.
struct SnapshotCost {
  std::string name;
  /// Its share of the mean.
  double share = 0;
  double costMs = 0;
};

/// Distinct rows that a batch uses of a shard with a row cache, and those of
/// them that are there.
struct CacheCost {
  std::string shard;
  double rows = 0;
  double hits = 0;
};

/// With snapshots every number is the weighted mean over them.
struct CostBreakdown {
  double costMs = 0;
  /// The parts of `step`; they add up to costMs under it.
  double inputMs = 0;
  /// What the step waits for rows from lower tiers.
  double fetchMs = 0;
  double maxForwardMs = 0;
  double exposedForwardCommunicationMs = 0;
  double denseMs = 0;
  double backwardCommunicationMs = 0;
  double maxBackwardMs = 0;
  /// CostModel::fixedStepMs().
  double fixedMs = 0;
  /// Bounds of CostModel::stepInterval(); 0 if it is not known.
  double lowMs = 0;
  double highMs = 0;
  /// CostModel::computeInterval(), of several classes the widest, and
  /// CostModel::communicationInterval(); by evaluate() alone.
  PredictionInterval computeInterval, communicationInterval;
  std::vector<DeviceCost> devices;
  /// Of the shards with a row cache, by evaluate() alone.
  std::vector<CacheCost> caches;
  /// Of a problem with snapshots, in their order.
  std::vector<SnapshotCost> snapshots;

  /// The largest of the snapshots' costs; costMs without snapshots.
  double worstMs() const;
};

/// Cost of given loads, and of what goes by way of relays beside them. An error
/// when the model gives no backward time and the objective needs it is reported
/// by checkObjective.
CostBreakdown composeCost(const Topology &topology,
                          std::span<const DeviceLoad> loads,
                          const CostModel &model,
                          const ObjectiveOptions &options,
                          std::span<const RelayLoad> relays = {});

/// The shards of a plan as cost models see them.
struct PlanWork {
  /// Of each shard, or of its first copy.
  std::deque<ShardWork> works;
  /// Of each copy of shards that are not replicated.
  std::deque<ShardWork> copies;
  /// Of each device; they point into `works` and `copies`.
  std::vector<ShardSet> sets;
};

/// Describes a plan that verify() accepts.
PlanWork describePlan(const ShardingProblem &problem, const ShardingPlan &plan);

/// The loads of a plan that verify() accepts, as if all went directly.
/// Expects a problem without snapshots.
std::vector<DeviceLoad> planLoads(const ShardingProblem &problem,
                                  const ShardingPlan &plan,
                                  const CostModel &model);

/// Cost of a plan, from scratch. Expects a plan that verify() accepts.
CostBreakdown evaluate(const ShardingProblem &problem, const ShardingPlan &plan,
                       const CostModel &model, const ObjectiveOptions &options);

/// What keeps this model from serving this objective.
Diagnostics checkObjective(const CostModel &model,
                           const ObjectiveOptions &options);

/// What keeps this model from pricing steps of the problem's mode.
Diagnostics checkMode(const ShardingProblem &problem, const CostModel &model);

/// A value no plan of the problem is below. docs/planner.md says how.
double lowerBoundMs(const ShardingProblem &problem, const CostModel &model,
                    const ObjectiveOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_OBJECTIVE_H
