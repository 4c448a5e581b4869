//===- Reduction.h - The pass of neuroshard-reduce -------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_REDUCE_REDUCTION_H
#define NEUROSHARD_TOOLS_REDUCE_REDUCTION_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"

namespace neuroshard {

#define GEN_PASS_DECL
#include "Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"

/// Makes the edits patterns of MLIR's `--reduction-tree`, which tests each on
/// one op.
void addReductionPatterns(mlir::DialectRegistry &registry);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_REDUCE_REDUCTION_H
