//===- CostModel.h - The interface every cost model implements --*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_COSTMODEL_H
#define NEUROSHARD_PLANNER_COSTMODEL_H

#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Planner/Machine.h"
#include "neuroshard/Planner/ShardWork.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace neuroshard {

struct ComputeMs {
  double forwardMs = 0;
  double backwardMs = 0;

  double total() const { return forwardMs + backwardMs; }
};

inline ComputeMs scaled(const ComputeMs &ms, const KernelScale &scale) {
  return {scale.forward * ms.forwardMs, scale.backward * ms.backwardMs};
}

/// The shards of one device, in the order in which they were placed.
struct ShardSet {
  const DeviceClass *deviceClass = nullptr;
  std::vector<const ShardWork *> shards;
};

/// Ids to the owners; results to the batch; gradients to the owners.
enum class Direction { Input, Forward, Backward };

/// What the devices exchange in one direction. Every owner's results are
/// spread evenly over the devices' parts of the batch. Bytes include the part
/// that stays on the device.
struct Traffic {
  const Topology *topology = nullptr;
  /// Sum of dims (Input: 0).
  std::vector<double> dims;
  std::vector<double> bytesOut;
  std::vector<double> bytesIn;
  /// What goes by way of relays beside these: in each group of the innermost
  /// level, spread evenly over it; and to the devices with the same index in
  /// all groups, which are of one size. All four are empty where nothing does.
  std::vector<double> insideOut = {}, insideIn = {};
  std::vector<double> acrossOut = {}, acrossIn = {};

  /// Of all ways.
  std::vector<double> allBytesOut() const;
  std::vector<double> allBytesIn() const;
};

/// Valid bounds whatever the plan; see CostModel::lowerBound.
struct CostBound {
  /// No plan's largest forward / backward / forward + backward is below.
  double maxForwardMs = 0;
  double maxBackwardMs = 0;
  double maxTotalMs = 0;
  /// No device's forward + backward communication is below; no plan's largest
  /// input / forward / backward communication is below.
  double minCommunicationMs = 0;
  double maxInputMs = 0;
  double maxForwardCommunicationMs = 0;
  double maxBackwardCommunicationMs = 0;
  /// No plan's largest forward + sending of a device's own results, no plan's
  /// largest receipt of its gradients + backward is below.
  double maxForwardSendMs = 0;
  double maxReceiveBackwardMs = 0;
};

/// A table as a bound sees it: the whole table as one shard, and what a plan
/// may do to it.
struct BoundTable {
  ShardWork whole;
  bool mayRowSplit = true;
  bool mayReplicate = true;
  /// If it may: at least what all devices together exchange in backward over
  /// links between groups.
  double replicaBackwardBytes = 0;
  /// The part of them that they have before they update other tables.
  double replicaReceivedBytes = 0;

  double leastBackwardBytes() const {
    return mayReplicate ? std::min(whole.backwardBytes, replicaBackwardBytes)
                        : whole.backwardBytes;
  }
  double leastReceivedBytes() const {
    return mayReplicate ? std::min(whole.backwardBytes, replicaReceivedBytes)
                        : whole.backwardBytes;
  }
};

/// Optional second form of a compute model: a device's cost depends on its
/// shards only through the sum of one vector per shard. Adding a shard is then
/// one vector addition and one head.
class SumEmbedding {
public:
  virtual ~SumEmbedding();
  virtual int size() const = 0;
  /// Writes size() numbers. They may depend on the device class.
  virtual void embed(const ShardWork &shard, const DeviceClass &deviceClass,
                     std::span<double> out) const = 0;
  /// `shardCount` 0 gives zero cost.
  virtual ComputeMs head(std::span<const double> sum, int shardCount,
                         const DeviceClass &deviceClass) const = 0;
  /// head() for many devices of one class at once. `sums` is row-major,
  /// shardCounts.size() x size(); out[i] belongs to row i. The default calls
  /// head() for each.
  virtual void heads(std::span<const double> sums,
                     std::span<const int> shardCounts,
                     const DeviceClass &deviceClass,
                     std::span<ComputeMs> out) const;
};

/// Predicts times. Implementations are immutable and safe to call from several
/// threads.
class CostModel {
public:
  virtual ~CostModel();

  virtual std::string name() const = 0;

  /// False: one number per set, reported as forward; such a model serves only
  /// the `published` objective.
  virtual bool separatesBackward() const { return true; }

  /// Fused compute of each set, in a batch: out[i] belongs to sets[i].
  virtual void computeMs(std::span<const ShardSet> sets,
                         std::span<ComputeMs> out) const = 0;

  /// Time of the exchange per device. `startSkewsMs`: how much later than the
  /// first each device starts; empty: all at once.
  virtual std::vector<double>
  communicationMs(const Traffic &traffic, std::span<const double> startSkewsMs,
                  Direction direction) const = 0;

  /// When each device has all that it receives in an exchange. `startsMs`: when
  /// it starts to send. `evenMs`: what the exchange takes if all start at once.
  /// By default that is what it takes after the last start; a model that knows
  /// the links knows what travels before.
  virtual std::vector<double> arrivalsMs(const Traffic &traffic,
                                         std::span<const double> startsMs,
                                         double evenMs,
                                         Direction direction) const;

  /// How many devices each of the topology stands for: a group's, where plans
  /// are made over whole groups.
  virtual int devicesEach() const { return 1; }

  /// What a step takes beside compute and exchanges, whatever the plan: host
  /// and framework.
  virtual double fixedStepMs() const { return 0; }

  /// Of the objective `step`; of the compute of a device, forward and backward
  /// together; of a device's exchange in one direction. Where measured.
  virtual PredictionInterval stepInterval() const { return {}; }
  virtual PredictionInterval
  computeInterval(const DeviceClass & /*deviceClass*/) const {
    return {};
  }
  virtual PredictionInterval communicationInterval() const { return {}; }

  /// What ran the steps that it was measured on, if it was on whole steps.
  virtual std::optional<Target> measuredTarget() const { return std::nullopt; }

  /// Null when the model has no such form.
  virtual const SumEmbedding *sumEmbedding() const { return nullptr; }

  /// Whether more shards on a device never make its compute faster, pieces
  /// joined never make it slower, and more to exchange never makes an exchange
  /// faster. Small problems then get an exact lower bound.
  virtual bool monotone() const { return false; }

  /// What a user should know about the predictions for a plan's devices: one
  /// sentence for each way in which they lie outside what the model was fitted
  /// to. The default knows of none.
  virtual std::vector<std::string> remarks(std::span<const ShardSet> sets,
                                           const Topology &topology) const;

  /// What was wrong with an answer, of a model that checks those of someone
  /// else's; its answers from then on mean nothing. search() returns it as an
  /// error, other callers ask once they have their answers.
  virtual std::optional<std::string> answerError() const {
    return std::nullopt;
  }

  /// Bounds no plan can be below; zeros (the default) are always valid.
  virtual CostBound lowerBound(std::span<const BoundTable> tables,
                               const Topology &topology) const;
};

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_COSTMODEL_H
