//===- Linker.h - Linking object code with lld -----------------*- C++ -*-===//
//
// Finds lld and runs it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_NATIVE_LINKER_H
#define NEUROSHARD_LIB_CONVERSION_NATIVE_LINKER_H

#include "neuroshard/Conversion/Native/NativeOptions.h"

#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Links one object file to the shared library `path`. Errors, with what the
/// linker said, are reported at `module`.
mlir::LogicalResult linkSharedLibrary(mlir::ModuleOp module,
                                      const NativeOptions &options,
                                      llvm::StringRef objectPath,
                                      llvm::StringRef path);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_NATIVE_LINKER_H
