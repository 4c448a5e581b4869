//===- RowVectorTypes.h - A row as vectors, and where it lies --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_ROWVECTORTYPES_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_ROWVECTORTYPES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace neuroshard {

/// The columns [offset, offset + width) of a block, which are one vector of
/// `length` elements. Those behind the columns have no value.
struct Slice {
  int64_t offset;
  int64_t width;
  int64_t length;

  bool isMasked() const { return width < length; }
};

/// Columns that are held in registers together. Slices are relative to the
/// column `begin`.
struct ColumnBlock {
  mlir::Value begin;
  llvm::SmallVector<Slice> slices;
};

/// One f32 vector for each slice of a block.
using Row = llvm::SmallVector<mlir::Value>;

/// Row `row` of a memref of rank 2, or the elements from number `row` on of a
/// memref of rank 1.
struct RowAddress {
  mlir::Value memref;
  mlir::Value row;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_ROWVECTORTYPES_H
