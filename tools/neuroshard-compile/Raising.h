//===- Raising.h - Lookups of other dialects, on request --------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMPILE_RAISING_H
#define NEUROSHARD_TOOLS_COMPILE_RAISING_H

#include "Options.h"

#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Makes lookups of what other dialects spell out, with a remark for each op
/// that looks like one and stays. What is left must be of dialects that are
/// known here.
mlir::LogicalResult raiseLookups(mlir::ModuleOp module,
                                 const CompileOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_RAISING_H
