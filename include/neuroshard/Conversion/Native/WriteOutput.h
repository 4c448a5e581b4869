//===- WriteOutput.h - Writes one file of a compilation ---------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_NATIVE_WRITEOUTPUT_H
#define NEUROSHARD_CONVERSION_NATIVE_WRITEOUTPUT_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <system_error>

namespace neuroshard {

/// The error at `loc` for a path that cannot be written.
mlir::InFlightDiagnostic failToWrite(mlir::Location loc, llvm::StringRef path,
                                     std::error_code error);

/// Writes the file `path` by `write`. If that fails, or the file cannot be
/// written as a whole, there is an error at `loc` and no file.
mlir::LogicalResult writeOutput(
    mlir::Location loc, llvm::StringRef path, llvm::sys::fs::OpenFlags flags,
    llvm::function_ref<mlir::LogicalResult(llvm::raw_pwrite_stream &)> write);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_NATIVE_WRITEOUTPUT_H
