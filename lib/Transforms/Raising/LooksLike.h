//===- LooksLike.h - Lookups in forms that are not raised -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_LOOKSLIKE_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_LOOKSLIKE_H

#include "mlir/IR/Operation.h"

namespace neuroshard::raising {

/// Whether `op`, of which no form is known, selects rows by ids: an op of torch
/// or TOSA that does, or a region that reads a matrix of floats from outside it
/// at an index that it loads. The matrix is an argument of a function, a
/// constant or a global: what is computed can be no table.
bool looksLikeLookup(mlir::Operation *op);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_LOOKSLIKE_H
