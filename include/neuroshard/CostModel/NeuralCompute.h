//===- NeuralCompute.h - Trained compute models and their files -*- C++ -*-===//
///
/// \file
/// The network, per shard of a device:
///
///   x   = (clamp(features) - mean) / std
///   h   = ReLU(T1 ReLU(T0 x))
///   s_k = exp(T2 h), rounded to kShardMsUnit, k = 1..K
///
/// where clamp keeps each feature in the training range, widened by a margin.
/// For a shard with more work than that, s is multiplied by the largest factor
/// by which a feature with countsWork() exceeds its range. Per device, with S
/// the sum of s over its shards:
///
///   z        = log(S + 1e-4)
///   r        = H1 ReLU(H0 z)
///   forward  = exp(z_0 + r_0), backward = exp(z_1 + r_1), in ms
///
/// A model has several such members; its prediction is their geometric mean.
/// Sums of the rounded s are exact in double as long as they stay below 2^21
/// ms, so the order of the shards never changes a prediction.
/// docs/cost-models.md has the file format.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_COSTMODEL_NEURALCOMPUTE_H
#define NEUROSHARD_COSTMODEL_NEURALCOMPUTE_H

#include "neuroshard/CostModel/ComputeFeatures.h"
#include "neuroshard/CostModel/DenseLayer.h"
#include "neuroshard/CostModel/FeatureScale.h"
#include "neuroshard/CostModel/Safetensors.h"
#include "neuroshard/Planner/CostModel.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard {

inline constexpr std::string_view kComputeModelSchema =
    "neuroshard.compute_model.v1";

/// Times of shards in ms are rounded to multiples of the unit, whose sums are
/// exact in double below 2^53 units, and are at most kMaxShardMs, which is more
/// than any shard takes.
inline constexpr double kShardMsUnit = 0x1p-32, kMaxShardMs = 0x1p16;

struct NeuralComputeMember {
  /// kFeatureCount -> hidden -> hidden -> K.
  std::array<DenseLayer, 3> table;
  /// K -> hidden -> 2.
  std::array<DenseLayer, 2> head;
};

/// All of a compute model; the one owner of the layout of its file.
struct NeuralComputeParameters {
  FeatureScale features;
  /// At least one, at most kMaxMembers, all of the same shapes.
  std::vector<NeuralComputeMember> members;
  /// Name of the DeviceClass it was measured on.
  std::string deviceClass;
  /// False: trained on simulated times; never picked by default.
  bool measured = false;
  /// Most shards on a device in the training data; 0: unknown.
  int64_t maxShards = 0;
  /// Of forward and backward together.
  PredictionInterval interval;
  /// A JSON object: machine, data, samples, held-out figures, repeat floor,
  /// seed, date.
  std::string card = "{}";
};

/// Default widths of layers; a file may have others, up to kMaxLayerWidth,
/// kMaxSumWidth and kMaxHeadHidden.
inline constexpr int kTableHidden0 = 128, kTableHidden1 = 64, kSumWidth = 16,
                     kHeadHidden = 32;

/// Everything wrong with the parameters; empty when they are sound: shapes,
/// finite numbers, std > 0, min <= max, the card.
Diagnostics check(const NeuralComputeParameters &parameters);

/// To and from a model file. Both check; reading also checks schema and
/// feature names.
Expected<TensorFile> toTensorFile(const NeuralComputeParameters &parameters);
Expected<NeuralComputeParameters> toComputeParameters(const TensorFile &file);

/// A compute model ready to evaluate. Immutable. As a SumEmbedding it ignores
/// the device class: it is the model of one.
class NeuralCompute final : public SumEmbedding {
public:
  /// `parameters` must pass check().
  explicit NeuralCompute(const NeuralComputeParameters &parameters);
  ~NeuralCompute() override;

  int size() const override;
  void embed(const ShardWork &shard, const DeviceClass &deviceClass,
             std::span<double> out) const override;
  ComputeMs head(std::span<const double> sum, int shardCount,
                 const DeviceClass &deviceClass) const override;
  void heads(std::span<const double> sums, std::span<const int> shardCounts,
             const DeviceClass &deviceClass,
             std::span<ComputeMs> out) const override;

  /// heads() where rows are `stride` numbers apart; the first size() count.
  void heads(std::span<const double> sums, size_t stride,
             std::span<const int> shardCounts, std::span<ComputeMs> out) const;

  /// How far the members disagree on a device: the larger of the standard
  /// deviations of log forward and log backward. 0 with one member.
  double uncertainty(std::span<const double> sum, int shardCount) const;

  const std::string &deviceClass() const;
  bool measured() const;
  int64_t maxShards() const;
  PredictionInterval interval() const;
  /// The training range of a feature.
  std::pair<float, float> rangeOf(int feature) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_NEURALCOMPUTE_H
