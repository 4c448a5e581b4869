//===- WriteOutput.h - Writes one file of a compilation ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_NATIVE_WRITEOUTPUT_H
#define NEUROSHARD_LIB_CONVERSION_NATIVE_WRITEOUTPUT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace neuroshard {

/// Writes the file `path` by `write`. If that fails, or the file cannot be
/// written as a whole, there is an error at `module` and no file.
mlir::LogicalResult writeOutput(
    mlir::ModuleOp module, llvm::StringRef path, llvm::sys::fs::OpenFlags flags,
    llvm::function_ref<mlir::LogicalResult(llvm::raw_pwrite_stream &)> write);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_NATIVE_WRITEOUTPUT_H
