//===- UpdateParts.h - Helpers of update kernels ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_UPDATEPARTS_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_UPDATEPARTS_H

#include "KernelBody.h"
#include "Optimizers/OptimizerRules.h"

namespace neuroshard {

/// Adds the gradients at the positions of `span` to `sum`.
Row addGradients(const UpdateBody &body, const ColumnBlock &block, Span span,
                 Row sum);

/// The sum of the gradients of a run. If the place of the first one is known,
/// that of a run of one is read at once.
Row sumGradients(const UpdateBody &body, const ColumnBlock &block, Span run);

/// The gradient of a run as the optimizer takes it, before weight decay.
Row readGradient(const UpdateBody &body, const ColumnBlock &block, Span run);

/// States of an optimizer: first those per element, then those per row.
llvm::ArrayRef<mlir::Value> elementStates(const UpdateBody &body);
llvm::ArrayRef<mlir::Value> rowStates(const UpdateBody &body);

/// Prefetches the states per row of row `ahead`, unless that is null.
void prefetchRowState(const UpdateBody &body, mlir::Value ahead);

/// Prefetches weights and element-wise states of row `ahead`.
void prefetchRow(const UpdateBody &body, mlir::Value ahead,
                 const ColumnBlock &block);

/// Writes element-wise states of a row.
void writeStates(const UpdateBody &body, llvm::ArrayRef<Row> states,
                 mlir::Value row, const ColumnBlock &block);

/// Writes the weights of a row after a step by `gradient`.
void writeWeights(const UpdateBody &body, Row weights, mlir::Value row,
                  const ColumnBlock &block, const Row &gradient);

/// The state per row of `row`, of an optimizer with one.
mlir::Value readRowState(const UpdateBody &body, mlir::Value row);

/// The states per row of `row`.
llvm::SmallVector<mlir::Value> readRowStates(const UpdateBody &body,
                                             mlir::Value row);

/// One step of the state of `row`, which was `before`, by the row's squared
/// norm; returns the state after it.
mlir::Value updateRowState(const UpdateBody &body, mlir::Value row,
                           mlir::Value before, mlir::Value norm);

/// What the blocks of a row take of the step of its states per row: factors of
/// the gradient and of the weights, which is null for 1.
struct RowFactors {
  mlir::Value ofGradient, ofWeights;
};

/// One step of the states per row of `row`, which were `before`, of an
/// optimizer without a trust ratio, by the row's squared norm.
RowFactors stepRowStates(const UpdateBody &body, mlir::Value row,
                         llvm::ArrayRef<mlir::Value> before, mlir::Value norm);

/// Weights and element-wise states of a block of a row, some of which are read
/// before the gradients are added up. They are converted to f32 only in get(),
/// so that no instruction waits for the loads before.
class RowBefore {
public:
  /// `states`: those that are read beside the weights. All arguments must
  /// outlive the object.
  RowBefore(const UpdateBody &body, mlir::Value row, const ColumnBlock &block,
            llvm::ArrayRef<mlir::Value> states);

  /// Reads the others.
  RowState get();

private:
  const UpdateBody &body;
  mlir::Value row;
  const ColumnBlock &block;
  llvm::SmallVector<mlir::Value> arrays;
  llvm::SmallVector<Row> stored;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_UPDATEPARTS_H
