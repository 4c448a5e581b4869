//===- Dense.h - Weights of dense layers as plain numbers -------*- C++ -*-===//
//
// What crosses between the files that use LibTorch and those that do not.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRAINING_DENSE_H
#define NEUROSHARD_LIB_TRAINING_DENSE_H

#include <cstdint>
#include <vector>

namespace neuroshard {

/// y = weight x + bias; the weight is row-major, outputs x inputs.
struct Dense {
  int64_t inputs = 0;
  int64_t outputs = 0;
  std::vector<float> weight;
  std::vector<float> bias;
};

/// Layers with ReLU between them.
using DenseStack = std::vector<Dense>;

/// Layers of these widths with uniform random weights (He, "Delving deep into
/// rectifiers", 2015) and zero biases. The same seed gives the same weights.
DenseStack randomStack(const std::vector<int64_t> &widths, uint64_t seed);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_DENSE_H
