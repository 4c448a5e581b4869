//===- GpuPipelines.h - The order of the passes on GPU modules --*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_GPU_GPUPIPELINES_H
#define NEUROSHARD_CONVERSION_GPU_GPUPIPELINES_H

#include "mlir/Pass/PassManager.h"

namespace neuroshard {

/// Distributes the bodies of GPU modules over lanes, inlines them into their
/// kernels and simplifies the result, which a GPU and the emulator run.
void buildGpuSimplification(mlir::OpPassManager &pm);

/// From simplified GPU modules to the NVVM dialect.
void buildGpuToNVVM(mlir::OpPassManager &pm);

/// Registers neuroshard-gpu-simplify and neuroshard-gpu-to-nvvm.
void registerGpuPipelines();

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_GPUPIPELINES_H
