//===- Kernels.h - Kernel bodies over MLIR's standard dialects -*- C++ -*-===//
//
// Every kernel has one body for all targets: items in an scf.parallel, one
// row as one-dimensional vectors that only transfer ops read and write. The
// CPU lowers it as it is; the same body can be distributed over the lanes of
// a warp.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_KERNELS_KERNELS_H
#define NEUROSHARD_CONVERSION_KERNELS_KERNELS_H

#include "neuroshard/Conversion/Kernels/KernelSpec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace neuroshard {

/// How a row is cut into vectors. The defaults are for the CPU.
struct RowShape {
  /// Elements of one vector: 16 f32 are one AVX-512 register. For a warp,
  /// four per lane.
  int64_t chunk = 16;
  /// Columns held in registers at a time, a multiple of `chunk`; a longer
  /// row is processed in blocks of this many columns.
  int64_t block = 256;
  /// Rows of a sum that are read before any of them is added.
  int64_t inFlight = 1;
  /// Columns of weights and states that an update reads before it adds up the
  /// gradients, which then wait for one another no longer; what is more is read
  /// after the sum.
  int64_t ahead = 0;
};

/// Marks a function whose memref arguments are passed as bare pointers
/// (understood by MLIR's conversion of functions to LLVM).
inline constexpr llvm::StringLiteral kBarePointerAttr = "llvm.bareptr";

/// The kernel of this specification in `module`: the one that is there
/// already, or a new private function. An invalid specification is an error
/// at the module. The dialects of registerKernelDialects must be available.
mlir::FailureOr<mlir::func::FuncOp>
getOrCreateKernel(mlir::ModuleOp module, const KernelSpec &spec,
                  const RowShape &shape = {});

/// Registers the dialects that kernels and program tables are made of.
void registerKernelDialects(mlir::DialectRegistry &registry);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_KERNELS_KERNELS_H
