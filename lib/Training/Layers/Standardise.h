//===- Standardise.h - Mean, spread and range of features -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRAINING_LAYERS_STANDARDISE_H
#define NEUROSHARD_LIB_TRAINING_LAYERS_STANDARDISE_H

#include "neuroshard/CostModel/FeatureScale.h"

#include <cstddef>
#include <span>

namespace neuroshard {

/// Of a row-major matrix with `columns` features; std is 1 where a feature
/// never changes.
FeatureScale scaleOf(std::span<const float> matrix, size_t columns);

/// Clamps each feature to the range, widened by `margin` times its width, and
/// standardises it; in place.
void standardise(std::span<float> matrix, const FeatureScale &scale,
                 float margin);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_LAYERS_STANDARDISE_H
