//===- SharedLibrary.h - From a module to a shared library -----*- C++ -*-===//
//
// Compiles a module of standard dialects to a shared library for a CPU.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_NATIVE_SHAREDLIBRARY_H
#define NEUROSHARD_CONVERSION_NATIVE_SHAREDLIBRARY_H

#include "neuroshard/Conversion/Native/NativeOptions.h"

#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Lowers `module` in place to the LLVM dialect and writes the shared library
/// `path`. It exports `neuroshard_program`, where the module has it, and one
/// `nsrt_invoke_<f>` for every public function <f>; functions that the module
/// only declares are bound when the library is loaded. Errors are reported at
/// `module`, and then no library is left behind.
mlir::LogicalResult compileToSharedLibrary(mlir::ModuleOp module,
                                           const NativeOptions &options,
                                           llvm::StringRef path);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_NATIVE_SHAREDLIBRARY_H
