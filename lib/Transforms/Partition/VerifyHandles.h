//===- VerifyHandles.h - Uses and releases of a step's handles --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PARTITION_VERIFYHANDLES_H
#define NEUROSHARD_LIB_TRANSFORMS_PARTITION_VERIFYHANDLES_H

#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Follows the routed ids and partial rows of a partitioned module through its
/// functions, in the order of a step. Each is used with its own exchange and
/// before its release, and is released once. Handles in nested regions are not
/// followed.
mlir::LogicalResult verifyHandles(mlir::ModuleOp module);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PARTITION_VERIFYHANDLES_H
