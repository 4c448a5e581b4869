//===- CopyResults.h - Results of a device's functions ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_TORUNTIME_COPYRESULTS_H
#define NEUROSHARD_LIB_CONVERSION_TORUNTIME_COPYRESULTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard {

/// Lets the runtime copy the tensors that a public function of a device returns
/// twice or has as arguments: callers free each result by itself, and host code
/// may not be able to read it.
void copyResults(mlir::func::FuncOp function);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_TORUNTIME_COPYRESULTS_H
