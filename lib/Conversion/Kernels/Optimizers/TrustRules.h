//===- TrustRules.h - Arithmetic of trust ratios ---------------*- C++ -*-===//
//
// LARS and LAMB, whose steps are scaled by norms over all columns of a row. A
// block of a row gives a direction, which the step takes, and products, which
// are summed over the columns: docs/kernels.md states both for each optimizer.
// Every operation is one f32 operation, rounded on its own.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_TRUSTRULES_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_TRUSTRULES_H

#include "OptimizerRules.h"

namespace neuroshard {

/// Factors of the first moment and of the root of the second one, which correct
/// the bias of moments that begin at 0.
struct MomentFactors {
  mlir::Value first, second;
};

/// Whether element-wise states have their step before the sums over the
/// columns are known; else after it.
bool stepsBeforeSums(const Optimizer &optimizer);

/// The element-wise states after their step, of an optimizer that steps them
/// before the sums.
llvm::SmallVector<Row, 2> stepMoments(RowBuilder &rows,
                                      const Optimizer &optimizer,
                                      llvm::ArrayRef<Row> states,
                                      const Row &gradient);

/// The direction. Of an optimizer that steps its states before the sums it
/// follows from these, after their step, and `gradient` is not read; of others
/// from the gradient.
Row trustDirection(RowBuilder &rows, const Optimizer &optimizer,
                   const Row &weights, llvm::ArrayRef<Row> moments,
                   const Row &gradient, const MomentFactors &factors);

/// What is summed over the columns: normsPerRow rows. `direction`: that of
/// trustDirection.
llvm::SmallVector<Row> trustProducts(RowBuilder &rows,
                                     const Optimizer &optimizer,
                                     const Row &weights, const Row &gradient,
                                     const Row &direction);

/// What the step of a row takes of its sums.
struct TrustStep {
  /// The step size times the trust ratio, which is 0 where it would divide by
  /// 0.
  mlir::Value size;
  /// Factor of the first moment of an optimizer with a state per row.
  mlir::Value ofMoment = {};
};

/// `sums`: of the products; `rowState`: after its step, null without.
TrustStep trustStep(mlir::ImplicitLocOpBuilder &b, RowBuilder &rows,
                    const Optimizer &optimizer,
                    llvm::ArrayRef<mlir::Value> sums, mlir::Value rowState,
                    mlir::Value stepSize, const MomentFactors &factors);

/// The direction of the weights' step, known only with the sums in some cases.
Row finalDirection(RowBuilder &rows, const Optimizer &optimizer,
                   const Row &weights, const Row &direction,
                   const TrustStep &step);

/// The step of weights by a final direction, and of those states that have
/// theirs only now.
RowState applyTrust(RowBuilder &rows, const Optimizer &optimizer,
                    const RowState &state, const Row &direction,
                    const TrustStep &step);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_OPTIMIZERS_TRUSTRULES_H
