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
                                 const RaiseLookupsOptions &raising,
                                 const CompileOptions &options);

/// An error at `loc` if the file of --weights-file cannot be written, or is
/// something else.
mlir::LogicalResult checkWeightsFile(const CompileOptions &options,
                                     mlir::Location loc);

/// Replaces the file of --weights-file as a whole, or leaves it as it is.
mlir::LogicalResult writeWeightsFile(const CompileOptions &options,
                                     llvm::StringRef bytes, mlir::Location loc);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_RAISING_H
