//===- TouchesTensors.h - Host code that works on tensors -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_MANIFEST_TOUCHESTENSORS_H
#define NEUROSHARD_LIB_CONVERSION_MANIFEST_TOUCHESTENSORS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard {

/// True if a function, or one that it calls, reads or writes values of tensors
/// by code of the host, other than to pass them to the runtime.
bool touchesTensors(mlir::func::FuncOp function);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_MANIFEST_TOUCHESTENSORS_H
