//===- CounterRules.h - Steps of rows that are counted ---------*- C++ -*-===//
//
// Row-wise Adagrad with counter: how much a row's weights decay follows from
// how often, and when last, the row was in a step. docs/kernels.md states the
// formulas with their source. Powers are f64, every other operation is one f32
// operation.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_COUNTERRULES_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_COUNTERRULES_H

#include "Rows/RowBuilder.h"

#include "neuroshard/Model/Optimizer.h"

namespace neuroshard {

/// What the step of a counted row takes, all f32.
struct CountedStep {
  /// The states per row after it.
  llvm::SmallVector<mlir::Value, kMaxStates> states;
  /// Of the gradient, without weight decay.
  mlir::Value factor;
  /// Of the weights; null: 1.
  mlir::Value kept;
};

/// `before`: the states per row. `squaredNorm`: of the gradient, with L2 weight
/// decay. `step`: the number of the step.
CountedStep stepCounted(mlir::ImplicitLocOpBuilder &b, RowBuilder &rows,
                        const Optimizer &optimizer, int64_t tableDim,
                        llvm::ArrayRef<mlir::Value> before,
                        mlir::Value squaredNorm, mlir::Value learningRate,
                        mlir::Value step);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_COUNTERRULES_H
