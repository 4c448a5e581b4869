//===- Emulation.h - From a GPU module to a library for the CPU *- C++ -*-===//
//
// Compiles GPU kernels for the emulator (lib/Emulator).
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_EMULATION_EMULATION_H
#define NEUROSHARD_CONVERSION_EMULATION_EMULATION_H

#include "neuroshard/Conversion/Native/SharedLibrary.h"

namespace neuroshard {

/// Compiles the only `gpu.module` of `module`, which is left as it is, and
/// writes the shared library `path`. It exports for each kernel `void
/// nsrt_invoke_<kernel>(void **params)`, which a fiber of the emulator runs
/// once per GPU thread, and is loaded by the emulator's cuModuleLoadData.
/// Errors are reported at the op concerned, and then no library is left
/// behind.
mlir::LogicalResult compileEmulated(mlir::ModuleOp module,
                                    const NativeOptions &options,
                                    llvm::StringRef path);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_EMULATION_EMULATION_H
