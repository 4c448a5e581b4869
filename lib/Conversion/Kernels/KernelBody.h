//===- KernelBody.h - The bodies of the kernels ----------------*- C++ -*-===//
//
// Kernels.cpp makes the function and hands its arguments, in the order of
// Runtime/KernelABI.h, to one of these.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_KERNELBODY_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_KERNELBODY_H

#include "RowBuilder.h"

namespace neuroshard {

/// What a body is made from. `arguments` are the function's, with the item
/// range already converted to index.
struct KernelBody {
  mlir::ImplicitLocOpBuilder &b;
  RowBuilder &rows;
  const KernelSpec &spec;
  mlir::ValueRange arguments;
  mlir::Value begin; ///< First item.
  mlir::Value end;   ///< Past the last item.
};

/// Rows ahead that are prefetched: far enough to hide a miss to memory behind
/// the rows in between, near enough that they are not evicted again.
inline constexpr int64_t kPrefetchRows = 16;

/// Emits a loop over the items [begin, end), in parallel.
void forEachItem(const KernelBody &body,
                 llvm::function_ref<void(mlir::Value item)> emit);

/// Loads element `position` of a memref of integers, as index.
mlir::Value loadIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                      mlir::Value position);

/// Loads element min(position + kPrefetchRows, last), as index: what an array
/// holds for the row to prefetch, without reading past its end.
mlir::Value loadAhead(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                      mlir::Value position, mlir::Value last);

void emitPooledLookup(const KernelBody &body);
void emitRowLookup(const KernelBody &body);
void emitWeightGradient(const KernelBody &body);
void emitUpdate(const KernelBody &body);
void emitReduce(const KernelBody &body);
void emitApply(const KernelBody &body);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_KERNELBODY_H
