//===- Emulated.h - The steps of neuroshard-emulate-gpu --------*- C++ -*-===//
//
// Each step leaves a valid module behind.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_EMULATION_EMULATED_H
#define NEUROSHARD_LIB_CONVERSION_EMULATION_EMULATED_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Moves all pointers and memrefs under `root` to the default address space,
/// and removes casts between address spaces. Shared memory is an error.
mlir::LogicalResult dropAddressSpaces(mlir::Operation *root);

/// Moves the functions of the only gpu.module of `module` into `module` and
/// erases it. Errors: none or several such modules, a symbol that is there
/// already.
mlir::LogicalResult dissolveGpuModule(mlir::ModuleOp module);

/// Turns every gpu.func into a func.func of bare pointers and numbers.
mlir::LogicalResult convertGpuFunctions(mlir::ModuleOp module);

/// A private declaration in `module`, made if it is not there.
mlir::func::FuncOp declareFunction(mlir::ModuleOp module, llvm::StringRef name,
                                   mlir::FunctionType type);

/// Tells the emulator of every access to memory before it happens.
void reportAccesses(mlir::ModuleOp module);

/// Replaces GPU ops by calls of the emulator. An op without an emulation is an
/// error.
mlir::LogicalResult convertGpuOps(mlir::ModuleOp module);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_EMULATION_EMULATED_H
