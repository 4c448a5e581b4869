//===- ProgramSpec.h - From a device program to its kernels ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_TORUNTIME_PROGRAMSPEC_H
#define NEUROSHARD_LIB_CONVERSION_TORUNTIME_PROGRAMSPEC_H

#include "neuroshard/Conversion/Kernels/ProgramTable.h"
#include "neuroshard/Dialect/NeuroShard.h"

namespace neuroshard {

/// The program that `name` asks for, or the only one.
mlir::FailureOr<ir::DeviceProgramOp> findProgram(mlir::ModuleOp module,
                                                 llvm::StringRef name);

/// What the kernels of `program` compute.
ProgramSpec describeProgram(ir::DeviceProgramOp program);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_TORUNTIME_PROGRAMSPEC_H
