//===- Difference.h - Largest difference between tensors -------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_DIFFERENCE_H
#define NEUROSHARD_TOOLS_RUN_DIFFERENCE_H

#include "Tensor.h"
#include "Tolerance.h"

#include <cstdint>
#include <vector>

namespace neuroshard::run {

struct Difference {
  double largest = 0;      ///< largest |a - b|.
  double largestValue = 0; ///< largest |b|.
  int64_t differing = 0;   ///< elements with other bits.
  int64_t elements = 0;
  int64_t beyond = 0; ///< elements further apart than is tolerated.
  /// Of the one that is beyond its limit most: how far apart, and the limit.
  double worst = 0, worstLimit = 0;
};

/// The type of the elements of a tensor of floats. Throws std::runtime_error
/// for others.
ElementType typeOfElements(const Tensor &tensor);

/// Compares tensors of f32, f16 or bf16 as values. Throws std::runtime_error if
/// shapes or types differ, or are others.
Difference compare(const std::vector<Tensor> &actual,
                   const std::vector<Tensor> &expected,
                   const Tolerance &tolerance);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_DIFFERENCE_H
