//===- HostKernels.h - Kernels as functions of the host ---------*- C++ -*-===//
//
// Every kernel has one body for all targets: items in an scf.parallel, one
// row as one-dimensional vectors that only transfer ops read and write. The
// CPU lowers it as it is; for GPUs it is distributed over the lanes of a warp.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_KERNELS_HOSTKERNELS_H
#define NEUROSHARD_CONVERSION_KERNELS_HOSTKERNELS_H

#include "neuroshard/Conversion/Kernels/KernelSpec.h"
#include "neuroshard/Conversion/Kernels/RowVectors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace neuroshard {

/// Marks a function whose memref arguments are passed as bare pointers
/// (understood by MLIR's conversion of functions to LLVM).
inline constexpr llvm::StringLiteral kBarePointerAttr = "llvm.bareptr";

/// The kernel of this specification in `module`: the one that is there
/// already, or a new private function. An invalid specification is an error
/// at the module. The dialects of registerKernelDialects must be available.
mlir::FailureOr<mlir::func::FuncOp>
getOrCreateKernel(mlir::ModuleOp module, const KernelSpec &spec,
                  const RowVectors &shape = {});

/// Registers the dialects of kernels and program tables.
void registerKernelDialects(mlir::DialectRegistry &registry);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_KERNELS_HOSTKERNELS_H
