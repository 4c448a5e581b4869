//===- ConvertToGpu.h - Partitioned IR to a GPU module ---------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_CONVERTTOGPU_H
#define NEUROSHARD_CONVERSION_CONVERTTOGPU_H

#include "neuroshard/Conversion/GPU/GpuModule.h"

namespace neuroshard {

/// Does the work of the pass convert-neuroshard-to-gpu and returns the record
/// of the program for the runtime. Errors are reported at `module`.
mlir::FailureOr<GpuProgram> convertToGpu(mlir::ModuleOp module,
                                         llvm::StringRef program,
                                         const GpuProgramOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_CONVERTTOGPU_H
