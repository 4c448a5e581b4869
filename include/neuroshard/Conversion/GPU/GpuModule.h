//===- GpuModule.h - GPU module of a device program -------------*- C++ -*-===//
//
// The module that the images of a device program are made of, and the record
// of it that runtimes read.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_GPU_GPUMODULE_H
#define NEUROSHARD_CONVERSION_GPU_GPUMODULE_H

#include "neuroshard/Artifact/GpuProgram.h"
#include "neuroshard/Conversion/GPU/GpuProgramOptions.h"
#include "neuroshard/Conversion/Kernels/ProgramTable.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace neuroshard {

/// Emits the module `neuroshard` at the end of `parent`, with the kernels of
/// RuntimeCuda/GpuKernelABI.h that the program needs. The record has no images
/// and no hash of the module yet. An error is reported at `parent`.
mlir::FailureOr<GpuProgram> buildGpuModule(mlir::ModuleOp parent,
                                           const ProgramSpec &program,
                                           const GpuProgramOptions &options);

/// Registers the dialects of GPU modules.
void registerGpuDialects(mlir::DialectRegistry &registry);

inline constexpr llvm::StringLiteral kGpuModuleName = "neuroshard";

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_GPUMODULE_H
