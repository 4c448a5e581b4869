//===- RowSteps.h - One op on rows ------------------------------*- C++ -*-===//
//
// What an op does with the rows of a lookup, whatever dialect it is of.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_ROWSTEPS_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_ROWSTEPS_H

#include "Found/FoundLookup.h"

namespace neuroshard::raising {

struct RowStep {
  enum Kind {
    /// No step that a lookup can take over.
    Other,
    /// The same rows in another type, or in f32 instead of f16 or bf16.
    Same,
    /// The leading dimensions (the ids) in the shape of the result.
    Reshape,
    /// Each row times the weight of its id.
    Weigh,
    /// The sum over dimension `dim`.
    Sum,
    /// Each number divided by `divisor`.
    Divide,
    /// Sum and division by the number of summands.
    Mean
  };
  Kind kind = Other;
  /// Of Weigh, and of Sum if it weighs: a tensor of the shape of the ids.
  Maker weights;
  mlir::Value weightsSource;
  int64_t dim = 0;
  double divisor = 0;
  /// Of Other: why what looks like a step is none, or empty.
  std::string reason;
  /// Other ops that the step takes the place of.
  llvm::SmallVector<mlir::Operation *> consumed;
};

/// What `use`, an operand that is the rows, is used for.
RowStep linalgStep(mlir::OpOperand &use);
RowStep torchStep(mlir::OpOperand &use);
RowStep stableHloStep(mlir::OpOperand &use);

/// The sum over `dim`, begun at `begin`.
RowStep sumOver(int64_t dim, mlir::Value begin);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_ROWSTEPS_H
