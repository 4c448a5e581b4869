//===- CheckLowered.h - Ops that have no native lowering --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_NATIVE_CHECKLOWERED_H
#define NEUROSHARD_LIB_CONVERSION_NATIVE_CHECKLOWERED_H

#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Reports the first op of `module` that the native pipeline has left.
mlir::LogicalResult checkLowered(mlir::ModuleOp module);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_NATIVE_CHECKLOWERED_H
