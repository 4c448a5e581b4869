//===- ConvertToGpu.h - Partitioned IR to a GPU module ---------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_CONVERTTOGPU_H
#define NEUROSHARD_CONVERSION_CONVERTTOGPU_H

#include "neuroshard/Conversion/GPU/GpuModule.h"

namespace neuroshard {

/// Does the work of the pass convert-neuroshard-to-gpu: emits the GPU module of
/// a device program of `partitioned` into `to`, which is empty, or
/// `partitioned` itself and then loses all its ops. Returns the record of the
/// program for the runtime. Errors are reported at `partitioned`.
mlir::FailureOr<GpuProgram> convertToGpu(mlir::ModuleOp partitioned,
                                         llvm::StringRef program,
                                         const GpuProgramOptions &options,
                                         mlir::ModuleOp to);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_CONVERTTOGPU_H
