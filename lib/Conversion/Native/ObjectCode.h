//===- ObjectCode.h - From the LLVM dialect to object code -----*- C++ -*-===//
//
// Translation, optimisation and code generation, in this process.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_NATIVE_OBJECTCODE_H
#define NEUROSHARD_LIB_CONVERSION_NATIVE_OBJECTCODE_H

#include "neuroshard/Conversion/Native/NativeOptions.h"

#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Compiles `module` (LLVM dialect) and writes an object file to
/// `objectPath`, and optimised LLVM IR to `irPath` unless that is empty.
/// Errors are reported at `module`.
mlir::LogicalResult writeObjectFile(mlir::ModuleOp module,
                                    const NativeOptions &options,
                                    llvm::StringRef objectPath,
                                    llvm::StringRef irPath);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_NATIVE_OBJECTCODE_H
