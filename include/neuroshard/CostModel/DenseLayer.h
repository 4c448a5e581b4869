//===- DenseLayer.h - Layers of model files ---------------------*- C++ -*-===//
///
/// \file
/// Compute models, communication models and placement policies are made of
/// these.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_COSTMODEL_DENSELAYER_H
#define NEUROSHARD_COSTMODEL_DENSELAYER_H

#include <cstdint>
#include <vector>

namespace neuroshard {

/// y = weight x + bias. `weight` is row-major [out, in], as LibTorch's Linear.
struct DenseLayer {
  int64_t in = 0;
  int64_t out = 0;
  std::vector<float> weight;
  std::vector<float> bias;
};

/// Most networks in the ensemble of a model.
inline constexpr int kMaxMembers = 16;
/// Members whose times differ by more than this share are worth a remark.
inline constexpr double kNotableDisagreement = 0.15;
/// Most outputs of a layer in a file.
inline constexpr int64_t kMaxLayerWidth = 1024;

/// Of compute models: the widths of the sum and of the head's hidden layer.
inline constexpr int64_t kMaxSumWidth = 64, kMaxHeadHidden = 128;
/// Of compute models: added to a sum before the logarithm.
inline constexpr double kLogFloor = 1e-4;

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_DENSELAYER_H
