//===- NeuralPolicy.h - Trained placement policies --------------*- C++ -*-===//
///
/// \file
/// The policy network of DreamShard (Zha et al., NeurIPS 2022), in our form.
/// Per piece p, the sum over its tables of
///
///   e_p = T1 ReLU(T0 x),  x = (clamp(table features) - mean) / std
///
/// and per device d of D, when piece p of P is to be placed,
///
///   c_d   = [D / P x sum of e over the pieces on d, e_p,
///            mean of e over the pieces still to come, g_d]
///   score = H2 ReLU(H1 ReLU(H0 c_d))
///
/// where g_d = (clamp(device features) - mean) / std, and clamp keeps each
/// feature in the training range, widened by a margin. Every number is relative
/// to the task's means, so that one policy serves all cost models, numbers of
/// tables and numbers of devices. docs/dreamshard.md has the file format.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_COSTMODEL_NEURALPOLICY_H
#define NEUROSHARD_COSTMODEL_NEURALPOLICY_H

#include "neuroshard/CostModel/ComputeFeatures.h"
#include "neuroshard/CostModel/DenseLayer.h"
#include "neuroshard/CostModel/FeatureScale.h"
#include "neuroshard/CostModel/Safetensors.h"
#include "neuroshard/Planner/PlacementPolicy.h"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

inline constexpr std::string_view kPlacementPolicySchema =
    "neuroshard.placement_policy.v1";

/// Default widths of layers; a file may have others, up to kMaxLayerWidth.
inline constexpr int kPlacementTableHidden = 64, kPlacementEmbedding = 16,
                     kPlacementHidden0 = 64, kPlacementHidden1 = 32;

inline constexpr int kPlacementFeatureCount = 26;

/// kPlacementFeatureCount names.
std::span<const std::string_view> placementFeatureNames();

/// Features of devices during an episode, relative to the task's mean times and
/// bytes and to the pieces that are left.
class PlacementScale {
public:
  explicit PlacementScale(const PlacementTask &task);
  void reset();
  void placed(size_t piece);
  /// Pieces not placed yet.
  size_t left() const { return piecesLeft; }
  /// Writes kPlacementFeatureCount numbers per device.
  void featurize(size_t piece, std::span<const PlacementDevice> devices,
                 std::span<float> out) const;

private:
  PlacementTask task;
  double meanMs = 0, meanBytes = 0;
  double msLeft = 0;
  double memoryLeft = 0;
  size_t piecesLeft = 0;
  std::vector<bool> isPlaced;
  /// Pieces by memory, largest first; those before `largest` are placed.
  std::vector<size_t> byMemory;
  size_t largest = 0;
};

/// All of a policy; the one owner of the layout of its file.
struct PlacementPolicyParameters {
  FeatureScale tableScale, deviceScale;
  /// kFeatureCount -> hidden -> K.
  std::array<DenseLayer, 2> table;
  /// 3 x K + kPlacementFeatureCount -> hidden -> hidden -> 1.
  std::array<DenseLayer, 3> head;
  /// A JSON object: settings, learning curve, held-out figures, seed.
  std::string card = "{}";
};

/// Everything wrong with the parameters; empty when they are sound.
Diagnostics check(const PlacementPolicyParameters &parameters);

/// To and from a file. Both check; reading also checks schema and feature
/// names.
Expected<TensorFile> toTensorFile(const PlacementPolicyParameters &parameters);
Expected<PlacementPolicyParameters>
toPlacementPolicyParameters(const TensorFile &file);

/// A policy ready for episodes. `parameters` must pass check().
std::unique_ptr<PlacementPolicy>
makePlacementPolicy(const PlacementPolicyParameters &parameters,
                    std::string name);

/// The policy in a file; an empty path: the shipped one,
/// placement_policy.safetensors in modelsFolder(). Errors name the file.
Expected<std::unique_ptr<PlacementPolicy>>
readPlacementPolicy(const std::string &path = "");

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_NEURALPOLICY_H
