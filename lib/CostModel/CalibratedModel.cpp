//===- CalibratedModel.cpp - A cost model corrected by a machine ----------===//

#include "neuroshard/CostModel/CalibratedModel.h"

#include <algorithm>
#include <vector>

using namespace neuroshard;

namespace {

ComputeMs correct(const Machine &machine, const ComputeMs &ms) {
  return {machine.forward(ms.forwardMs), machine.backward(ms.backwardMs)};
}

/// The heads of another embedding, corrected.
class CalibratedEmbedding final : public SumEmbedding {
public:
  CalibratedEmbedding(const SumEmbedding &model, const Machine &machine)
      : model(model), machine(machine) {}

  int size() const override { return model.size(); }
  void embed(const ShardWork &shard, const DeviceClass &deviceClass,
             std::span<double> out) const override {
    model.embed(shard, deviceClass, out);
  }
  ComputeMs head(std::span<const double> sum, int shardCount,
                 const DeviceClass &deviceClass) const override {
    return correct(machine, model.head(sum, shardCount, deviceClass));
  }
  void heads(std::span<const double> sums, std::span<const int> shardCounts,
             const DeviceClass &deviceClass,
             std::span<ComputeMs> out) const override {
    model.heads(sums, shardCounts, deviceClass, out);
    for (ComputeMs &ms : out)
      ms = correct(machine, ms);
  }

private:
  const SumEmbedding &model;
  const Machine &machine;
};

class CalibratedModel final : public CostModel {
public:
  CalibratedModel(std::unique_ptr<CostModel> given, const Machine &measured,
                  std::string name)
      : model(std::move(given)), machine(measured), ownName(std::move(name)) {
    if (const SumEmbedding *sums = model->sumEmbedding())
      embedding = std::make_unique<CalibratedEmbedding>(*sums, machine);
  }

  std::string name() const override { return ownName; }
  bool separatesBackward() const override { return model->separatesBackward(); }
  const SumEmbedding *sumEmbedding() const override { return embedding.get(); }
  bool monotone() const override { return model->monotone(); }
  double fixedStepMs() const override {
    return model->fixedStepMs() + machine.fixedStepMs;
  }
  PredictionInterval stepInterval() const override { return machine.interval; }
  std::optional<Target> measuredTarget() const override {
    return machine.target;
  }

  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    model->computeMs(sets, out);
    for (ComputeMs &ms : out)
      ms = correct(machine, ms);
  }

  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override {
    std::vector<double> times =
        model->communicationMs(traffic, startSkewsMs, direction);
    // Skews are of corrected times: only the exchange itself is corrected.
    std::vector<double> exchange =
        startSkewsMs.empty() ? times
                             : model->communicationMs(traffic, {}, direction);
    for (size_t i = 0; i < times.size(); ++i)
      times[i] += correctionOf(direction)(exchange[i]) - exchange[i];
    return times;
  }

  std::vector<double> arrivalsMs(const Traffic &traffic,
                                 std::span<const double> startsMs,
                                 double evenMs,
                                 Direction direction) const override {
    return model->arrivalsMs(traffic, startsMs, evenMs, direction);
  }

  std::vector<std::string> remarks(std::span<const ShardSet> sets,
                                   const Topology &topology) const override;
  std::optional<std::string> answerError() const override {
    return model->answerError();
  }
  CostBound lowerBound(std::span<const BoundTable> tables,
                       const Topology &topology) const override;

private:
  const TimeCorrection &correctionOf(Direction direction) const {
    switch (direction) {
    case Direction::Input:
      return machine.input;
    case Direction::Forward:
      return machine.forwardCommunication;
    case Direction::Backward:
      return machine.backwardCommunication;
    }
    return machine.input;
  }

  std::unique_ptr<CostModel> model;
  Machine machine;
  std::string ownName;
  std::unique_ptr<CalibratedEmbedding> embedding;
};

std::string describe(int devices, int groups, const std::string &deviceClass) {
  std::string text = std::to_string(devices) + " " + deviceClass;
  if (groups > 1)
    text += " in " + std::to_string(groups) + " groups";
  return text;
}

std::vector<std::string>
CalibratedModel::remarks(std::span<const ShardSet> sets,
                         const Topology &topology) const {
  std::vector<std::string> remarks = model->remarks(sets, topology);
  int devices = static_cast<int>(topology.devices.size());
  auto groups = static_cast<int>(topology.levels.back().groupSizes.size());
  bool isOther = std::any_of(topology.devices.begin(), topology.devices.end(),
                             [&](const Device &device) {
                               return device.deviceClass != machine.deviceClass;
                             });
  if (devices != machine.devices || groups != machine.groups || isOther)
    remarks.push_back(
        "'" + ownName + "' was measured on " +
        describe(machine.devices, machine.groups, machine.deviceClass) +
        "; this topology has " +
        describe(devices, groups,
                 isOther ? "devices, some of another class"
                         : machine.deviceClass) +
        ": calibrate there");
  for (const DeviceClass *own : topology.ownClasses)
    if (own->kernelScale.forward > 0)
      remarks.push_back("device class '" + std::string(own->name) +
                        "' states how much longer its kernels take, and '" +
                        ownName +
                        "' corrects these times once more: plan for this class "
                        "without this cost model");
  return remarks;
}

CostBound CalibratedModel::lowerBound(std::span<const BoundTable> tables,
                                      const Topology &topology) const {
  CostBound bound = model->lowerBound(tables, topology);
  bound.maxForwardMs = machine.forward(bound.maxForwardMs);
  bound.maxBackwardMs = machine.backward(bound.maxBackwardMs);
  bound.maxTotalMs *= std::min(machine.forward.scale, machine.backward.scale);
  bound.minCommunicationMs *= std::min(machine.forwardCommunication.scale,
                                       machine.backwardCommunication.scale);
  bound.maxInputMs = machine.input(bound.maxInputMs);
  bound.maxForwardCommunicationMs =
      machine.forwardCommunication(bound.maxForwardCommunicationMs);
  bound.maxBackwardCommunicationMs =
      machine.backwardCommunication(bound.maxBackwardCommunicationMs);
  bound.maxForwardSendMs *=
      std::min(machine.forward.scale, machine.forwardCommunication.scale);
  bound.maxReceiveBackwardMs *=
      std::min(machine.backward.scale, machine.backwardCommunication.scale);
  return bound;
}

} // namespace

std::unique_ptr<CostModel>
neuroshard::calibrate(std::unique_ptr<CostModel> model, const Machine &machine,
                      std::string name) {
  return std::make_unique<CalibratedModel>(std::move(model), machine,
                                           std::move(name));
}
