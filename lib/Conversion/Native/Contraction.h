//===- Contraction.h - Matrix products among structured ops ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_NATIVE_CONTRACTION_H
#define NEUROSHARD_LIB_CONVERSION_NATIVE_CONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace neuroshard {

/// An operand of a contraction and the loop that each of its dimensions
/// follows.
struct ContractionOperand {
  mlir::Value buffer;
  llvm::SmallVector<unsigned> loops;

  bool has(unsigned loop) const { return llvm::is_contained(loops, loop); }
};

/// C[..., i, j] += A[..., i, k] * B[..., k, j] in f32 on buffers, with the
/// dimensions of A and B in any order. A and B may be of narrower types, which
/// are extended before they are multiplied. The rows of C are contiguous.
struct Contraction {
  ContractionOperand a, b, c;
  unsigned i, j, k;
  /// All other loops; they are parallel.
  llvm::SmallVector<unsigned> outer;

  /// What `op` computes, if that is such a product.
  static std::optional<Contraction> match(mlir::linalg::GenericOp op);
};

/// Whether neighbours in the last dimension of a memref are neighbours in
/// memory.
bool hasContiguousRows(mlir::Value buffer);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_NATIVE_CONTRACTION_H
