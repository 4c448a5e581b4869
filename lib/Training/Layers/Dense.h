//===- Dense.h - Weights of dense layers as plain numbers -------*- C++ -*-===//
//
// Plain numbers, so that only the files with networks include LibTorch.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRAINING_LAYERS_DENSE_H
#define NEUROSHARD_LIB_TRAINING_LAYERS_DENSE_H

#include "neuroshard/CostModel/NeuralCompute.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Layers with ReLU between them.
using DenseStack = std::vector<DenseLayer>;

/// Layers of these widths with uniform random weights (He, "Delving deep into
/// rectifiers", 2015) and zero biases. The same seed gives the same weights.
DenseStack randomStack(const std::vector<int64_t> &widths, uint64_t seed);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_LAYERS_DENSE_H
