//===- GroupModel.h - Groups of devices as devices of their own -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_GROUPS_GROUPMODEL_H
#define NEUROSHARD_LIB_PLANNER_GROUPS_GROUPMODEL_H

#include "neuroshard/Planner/CostModel.h"

#include <vector>

namespace neuroshard {

/// What a plan over whole groups costs by the model of their devices, if each
/// group's work and bytes are spread evenly over it, as results that go by
/// relay are. All arguments must outlive it.
class GroupModel final : public CostModel {
public:
  /// `topology`: of the devices, in consecutive groups of `groupSize`.
  GroupModel(const CostModel &model, const Topology &topology, int groupSize)
      : model(model), topology(topology), groupSize(groupSize),
        embedding(model.sumEmbedding(), groupSize) {}

  std::string name() const override { return model.name(); }
  bool separatesBackward() const override { return model.separatesBackward(); }
  double fixedStepMs() const override { return model.fixedStepMs(); }
  int devicesEach() const override { return groupSize; }
  const SumEmbedding *sumEmbedding() const override {
    return model.sumEmbedding() ? &embedding : nullptr;
  }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override;
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override;
  std::vector<double> arrivalsMs(const Traffic &traffic,
                                 std::span<const double> startsMs,
                                 double evenMs,
                                 Direction direction) const override;

private:
  /// The model's embedding of what one device of a group has of a shard.
  class ShareEmbedding final : public SumEmbedding {
  public:
    ShareEmbedding(const SumEmbedding *embedding, int groupSize)
        : embedding(embedding), groupSize(groupSize) {}
    int size() const override { return embedding->size(); }
    void embed(const ShardWork &shard, const DeviceClass &deviceClass,
               std::span<double> out) const override;
    ComputeMs head(std::span<const double> sum, int shardCount,
                   const DeviceClass &deviceClass) const override {
      return embedding->head(sum, shardCount, deviceClass);
    }
    void heads(std::span<const double> sums, std::span<const int> shardCounts,
               const DeviceClass &deviceClass,
               std::span<ComputeMs> out) const override {
      embedding->heads(sums, shardCounts, deviceClass, out);
    }

  private:
    const SumEmbedding *embedding;
    int groupSize;
  };

  Traffic ofDevices(const Traffic &groups) const;
  std::vector<double> forDevices(std::span<const double> groups,
                                 double share) const;
  std::vector<double> forGroups(const std::vector<double> &devices) const;

  const CostModel &model;
  const Topology &topology;
  int groupSize;
  ShareEmbedding embedding;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_GROUPS_GROUPMODEL_H
