//===- LinalgForms.h - Rows gathered by tensor and linalg ops ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_LINALGFORMS_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_LINALGFORMS_H

#include "Found/FoundLookup.h"

namespace neuroshard::raising {

/// Rows by `tensor.gather`.
std::optional<FoundLookup> findTensorGather(mlir::Operation *op,
                                            Misses &misses);

/// Rows, or sums of rows, by a `linalg.generic` that extracts from the table.
std::optional<FoundLookup> findLinalgGather(mlir::Operation *op,
                                            Misses &misses);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_LINALGFORMS_H
