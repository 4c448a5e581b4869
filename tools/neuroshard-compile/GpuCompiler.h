//===- GpuCompiler.h - Compiles device programs for GPUs --------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMPILE_GPUCOMPILER_H
#define NEUROSHARD_TOOLS_COMPILE_GPUCOMPILER_H

#include "ArtifactDirectory.h"
#include "Options.h"

#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Writes the images of device program `name` of the partitioned `module`,
/// <name>.gpu.json and, if asked for, the library for the emulator.
mlir::LogicalResult compileForGpu(const CompileOptions &options,
                                  mlir::ModuleOp module, llvm::StringRef name,
                                  ArtifactDirectory &directory);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_GPUCOMPILER_H
