//===- QuantizedRows.h - Rows of 8 or 4 bits as f32 ------------*- C++ -*-===//
//
// Reads the formats of tables that are served (Model/Types.h).
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_QUANTIZEDROWS_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_QUANTIZEDROWS_H

#include "RowVectorTypes.h"

#include "neuroshard/Model/Types.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace neuroshard {

/// Emits the read of a block of a row of bytes (a memref of rank 2), as f32.
Row readQuantized(mlir::ImplicitLocOpBuilder &b, const RowAddress &address,
                  const ColumnBlock &block, ElementType format);

/// Where a block begins in its row; the first one at its scale.
mlir::Value byteOfBlock(mlir::ImplicitLocOpBuilder &b, const ColumnBlock &block,
                        ElementType format);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_QUANTIZEDROWS_H
