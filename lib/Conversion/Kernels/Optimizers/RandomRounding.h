//===- RandomRounding.h - Stochastic rounding of weights --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_RANDOMROUNDING_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_RANDOMROUNDING_H

#include "Rows/RowBuilder.h"

namespace neuroshard {

/// Values of f16 or bf16, as f32: each is the one below or above that of `row`,
/// the nearer the likelier, so that the mean over random numbers is the value
/// of `row`. A random number is a hash of `seed` (i32), of the row's gradient
/// and of the value itself: the same for every plan, thread and target.
Row roundAtRandom(mlir::ImplicitLocOpBuilder &b, ElementType element,
                  const Row &row, const Row &gradient, mlir::Value seed);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_RANDOMROUNDING_H
