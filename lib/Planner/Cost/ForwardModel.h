//===- ForwardModel.h - Cost of lookups without updates ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_FORWARDMODEL_H
#define NEUROSHARD_LIB_PLANNER_COST_FORWARDMODEL_H

#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/CostModel.h"

#include <optional>

namespace neuroshard {

/// Another model's steps without backward: updates and what travels for them
/// take no time. The model must outlive it.
class ForwardModel final : public CostModel {
public:
  explicit ForwardModel(const CostModel &model)
      : model(model), embedding(model.sumEmbedding()) {}

  std::string name() const override { return model.name(); }
  bool separatesBackward() const override { return model.separatesBackward(); }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override;
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override;
  std::vector<double> arrivalsMs(const Traffic &traffic,
                                 std::span<const double> startsMs,
                                 double evenMs,
                                 Direction direction) const override;
  int devicesEach() const override { return model.devicesEach(); }
  double fixedStepMs() const override { return model.fixedStepMs(); }
  // Intervals of steps, and of forward and backward together, are not known of
  // one of them.
  PredictionInterval communicationInterval() const override {
    return model.communicationInterval();
  }
  std::optional<Target> measuredTarget() const override {
    return model.measuredTarget();
  }
  const SumEmbedding *sumEmbedding() const override {
    return model.sumEmbedding() ? &embedding : nullptr;
  }
  bool monotone() const override { return model.monotone(); }
  std::vector<std::string> remarks(std::span<const ShardSet> sets,
                                   const Topology &topology) const override {
    return model.remarks(sets, topology);
  }
  CostBound lowerBound(std::span<const BoundTable> tables,
                       const Topology &topology) const override;

private:
  class Embedding final : public SumEmbedding {
  public:
    explicit Embedding(const SumEmbedding *inner) : inner(inner) {}
    int size() const override { return inner->size(); }
    void embed(const ShardWork &shard, const DeviceClass &deviceClass,
               std::span<double> out) const override {
      inner->embed(shard, deviceClass, out);
    }
    ComputeMs head(std::span<const double> sum, int shardCount,
                   const DeviceClass &deviceClass) const override;
    void heads(std::span<const double> sums, std::span<const int> shardCounts,
               const DeviceClass &deviceClass,
               std::span<ComputeMs> out) const override;

  private:
    const SumEmbedding *inner;
  };

  const CostModel &model;
  Embedding embedding;
};

/// A model as it prices the steps of a problem: those without backward if the
/// problem's mode is inference. The model must outlive it.
class ModelOfMode {
public:
  ModelOfMode(const ShardingProblem &problem, const CostModel &given)
      : given(given) {
    if (problem.mode == StepMode::Inference)
      forward.emplace(given);
  }
  const CostModel &operator*() const {
    if (forward)
      return *forward;
    return given;
  }

private:
  const CostModel &given;
  std::optional<ForwardModel> forward;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_FORWARDMODEL_H
