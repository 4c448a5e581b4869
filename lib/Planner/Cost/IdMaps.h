//===- IdMaps.h - Maps of dynamic ids beside a plan -------------*- C++ -*-===//
//
// Maps of dynamic ids (docs/dynamic-ids.md) lie in memory of hosts and are
// asked before a step, whatever the plan. So the planner takes what they need
// from the hosts, and adds their time to what each step takes; searches know
// nothing of them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_IDMAPS_H
#define NEUROSHARD_LIB_PLANNER_COST_IDMAPS_H

#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/CostModel.h"

namespace neuroshard {

bool hasDynamicIds(const ShardingProblem &problem);

/// The problem with static ids, and hosts that have less memory, by what the
/// maps take: 0 at least.
ShardingProblem withoutIdMaps(ShardingProblem problem);

/// What the maps add to a step: the term kIdMapsTerm (Artifact/IdMapSpans.h).
struct IdMapsCost {
  /// Distinct ids of each device's part of the batch to their owners, and rows
  /// back: two exchanges.
  double exchangeMs = 0;
  /// Finding the distinct ids of a part, and an owner's look-up of those that
  /// it is asked for, on the host; by rates that were measured
  /// (docs/planner.md, dynamic ids).
  double lookUpMs = 0;

  double totalMs() const { return exchangeMs + lookUpMs; }
};

/// 0 of a problem without dynamic ids.
IdMapsCost idMapsCost(const ShardingProblem &problem, const CostModel &model);

/// Another model, each step of which takes `ms` more. The model must outlive
/// it.
class LongerSteps final : public CostModel {
public:
  LongerSteps(const CostModel &model, double ms) : model(model), ms(ms) {}

  std::string name() const override { return model.name(); }
  bool separatesBackward() const override { return model.separatesBackward(); }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    model.computeMs(sets, out);
  }
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override {
    return model.communicationMs(traffic, startSkewsMs, direction);
  }
  std::vector<double> arrivalsMs(const Traffic &traffic,
                                 std::span<const double> startsMs,
                                 double evenMs,
                                 Direction direction) const override {
    return model.arrivalsMs(traffic, startsMs, evenMs, direction);
  }
  int devicesEach() const override { return model.devicesEach(); }
  double fixedStepMs() const override { return model.fixedStepMs() + ms; }
  PredictionInterval stepInterval() const override {
    return model.stepInterval();
  }
  PredictionInterval
  computeInterval(const DeviceClass &deviceClass) const override {
    return model.computeInterval(deviceClass);
  }
  PredictionInterval communicationInterval() const override {
    return model.communicationInterval();
  }
  std::optional<Target> measuredTarget() const override {
    return model.measuredTarget();
  }
  const SumEmbedding *sumEmbedding() const override {
    return model.sumEmbedding();
  }
  bool monotone() const override { return model.monotone(); }
  std::vector<std::string> remarks(std::span<const ShardSet> sets,
                                   const Topology &topology) const override {
    return model.remarks(sets, topology);
  }
  CostBound lowerBound(std::span<const BoundTable> tables,
                       const Topology &topology) const override {
    return model.lowerBound(tables, topology);
  }

private:
  const CostModel &model;
  double ms;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_IDMAPS_H
