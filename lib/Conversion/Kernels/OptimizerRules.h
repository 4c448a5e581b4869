//===- OptimizerRules.h - The arithmetic of the optimizers -----*- C++ -*-===//
//
// Formulas on one block of a row; docs/kernels.md states them with their
// sources. Every operation is one f32 operation, rounded on its own.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERRULES_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERRULES_H

#include "RowBuilder.h"

namespace neuroshard {

/// A block of a row and of its element-wise states.
struct RowState {
  Row weights;
  llvm::SmallVector<Row, 2> states;
};

/// gradient + decay * weights; the gradient itself without decay.
Row addWeightDecay(RowBuilder &rows, const Optimizer &optimizer,
                   const Row &gradient, const Row &weights);

/// One step of SGD, Adagrad or Adam; `gradient` includes weight decay.
RowState applyElementwise(RowBuilder &rows, const Optimizer &optimizer,
                          const RowState &state, const Row &gradient,
                          mlir::Value stepSize);

/// One step of rowwise Adagrad on the state of a row:
/// accumulator + squaredNorm / tableDim.
mlir::Value accumulateRowwise(mlir::ImplicitLocOpBuilder &b, RowBuilder &rows,
                              int64_t tableDim, mlir::Value accumulator,
                              mlir::Value squaredNorm);

/// The factor of the gradient of a row: stepSize / (sqrt(accumulator) + eps).
mlir::Value rowwiseFactor(mlir::ImplicitLocOpBuilder &b, RowBuilder &rows,
                          const Optimizer &optimizer, mlir::Value accumulator,
                          mlir::Value stepSize);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERRULES_H
