//===- BatchReductions.h - Reductions over the samples ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PARTITION_BATCHREDUCTIONS_H
#define NEUROSHARD_LIB_TRANSFORMS_PARTITION_BATCHREDUCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard {

/// An op that reduces over the samples of one of `values`, whose dimension 0
/// has the samples, or null. Follows them through ops on tensors and calls;
/// what other ops make of them is not known.
mlir::Operation *findBatchReduction(llvm::ArrayRef<mlir::Value> values);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PARTITION_BATCHREDUCTIONS_H
