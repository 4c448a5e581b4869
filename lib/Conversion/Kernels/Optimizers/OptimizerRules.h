//===- OptimizerRules.h - The arithmetic of the optimizers -----*- C++ -*-===//
//
// Formulas on one block of a row; docs/kernels.md states them with their
// sources. Every operation is one f32 operation, rounded on its own.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_OPTIMIZERRULES_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_OPTIMIZERRULES_H

#include "Rows/RowBuilder.h"

#include "neuroshard/Model/Optimizer.h"

namespace neuroshard {

/// A block of a row and of its element-wise states.
struct RowState {
  Row weights;
  llvm::SmallVector<Row, kMaxStates> states;
};

/// A row's summed gradient with its elements clamped, if the optimizer does.
Row clipGradient(RowBuilder &rows, const Optimizer &optimizer,
                 const Row &gradient);

/// gradient + decay * weights under L2 weight decay; else the gradient itself.
Row addWeightDecay(RowBuilder &rows, const Optimizer &optimizer,
                   const Row &gradient, const Row &weights);

/// kept * weights, where `kept` is not null; else the weights themselves.
Row keepWeights(RowBuilder &rows, const Row &weights, mlir::Value kept);

/// beta * average + (1 - beta) * value.
Row movingAverage(RowBuilder &rows, double beta, const Row &average,
                  const Row &value);

/// One step of an optimizer without states per row. `gradient` and the weights
/// include weight decay.
RowState applyElementwise(RowBuilder &rows, const Optimizer &optimizer,
                          const RowState &state, const Row &gradient,
                          mlir::Value stepSize);

/// One step of the state of a row: the mean of the squared gradient over the
/// table's columns, squaredNorm / tableDim, is added to it (rowwise Adagrad) or
/// averaged with it (those with a beta2).
mlir::Value stepRowState(mlir::ImplicitLocOpBuilder &b, RowBuilder &rows,
                         const Optimizer &optimizer, int64_t tableDim,
                         mlir::Value before, mlir::Value squaredNorm);

/// The factor of a row's step: stepSize / (sqrt(rowState) + eps).
mlir::Value rowwiseFactor(mlir::ImplicitLocOpBuilder &b, RowBuilder &rows,
                          const Optimizer &optimizer, mlir::Value rowState,
                          mlir::Value stepSize);

/// The step of the weights and element-wise states of an optimizer with a state
/// per row, by the factor of rowwiseFactor.
RowState applyRowwise(RowBuilder &rows, const Optimizer &optimizer,
                      const RowState &state, const Row &gradient,
                      mlir::Value factor);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_OPTIMIZERRULES_H
