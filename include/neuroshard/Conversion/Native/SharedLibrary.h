//===- SharedLibrary.h - From a module to a shared library -----*- C++ -*-===//
//
// Compiles a module of standard dialects to a shared library for a CPU.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_NATIVE_SHAREDLIBRARY_H
#define NEUROSHARD_CONVERSION_NATIVE_SHAREDLIBRARY_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace neuroshard {

struct NativeOptions {
  /// "host", or a CPU of this machine's architecture by LLVM's name, such as
  /// "x86-64-v3" or "znver4".
  std::string targetCpu = "host";
  /// 0 to 3, as -O0 to -O3. Floating-point arithmetic is exact at all levels:
  /// nothing is contracted or reassociated that does not ask for it.
  int optLevel = 3;
  /// Also writes <library>.mlir (LLVM dialect), <library>.ll (optimised) and
  /// <library>.o.
  bool keepIntermediates = false;
  /// The linker; by default ld.lld-22 or ld.lld, from the search path or from
  /// the LLVM that NeuroShard was built with.
  std::string linker;
};

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
