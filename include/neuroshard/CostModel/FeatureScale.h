//===- FeatureScale.h - Clamps and standardises features --------*- C++ -*-===//

#ifndef NEUROSHARD_COSTMODEL_FEATURESCALE_H
#define NEUROSHARD_COSTMODEL_FEATURESCALE_H

#include <algorithm>
#include <cstddef>
#include <vector>

namespace neuroshard {

/// Mean, standard deviation and range of each feature in the training data. A
/// feature that is the same in all samples has std 1.
struct FeatureScale {
  std::vector<float> mean, std, min, max;
};

/// Features are clamped to the training range widened by this share of it.
inline constexpr float kRangeMargin = 0.1f;

/// The range of feature i, widened by `margin` times its width.
inline float leastValue(const FeatureScale &scale, size_t i,
                        float margin = kRangeMargin) {
  return scale.min[i] - margin * (scale.max[i] - scale.min[i]);
}
inline float mostValue(const FeatureScale &scale, size_t i,
                       float margin = kRangeMargin) {
  return scale.max[i] + margin * (scale.max[i] - scale.min[i]);
}
inline float clampFeature(const FeatureScale &scale, size_t i, float value,
                          float margin = kRangeMargin) {
  return std::clamp(value, leastValue(scale, i, margin),
                    mostValue(scale, i, margin));
}

/// A clamped feature less its mean, in standard deviations.
inline float standardiseClamped(const FeatureScale &scale, size_t i,
                                float value) {
  return (value - scale.mean[i]) / scale.std[i];
}

/// Clamps feature i, then standardises it.
inline float standardiseFeature(const FeatureScale &scale, size_t i,
                                float value, float margin = kRangeMargin) {
  return standardiseClamped(scale, i, clampFeature(scale, i, value, margin));
}

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_FEATURESCALE_H
