//===- TableIndex.h - Indices of a module's tables --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_TABLEINDEX_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_TABLEINDEX_H

#include "mlir/IR/BuiltinAttributes.h"

#include "llvm/ADT/DenseMap.h"

namespace neuroshard {

/// Index in the planning problem of each table, by its symbol.
using TableIndex = llvm::DenseMap<mlir::StringAttr, int>;

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_TABLEINDEX_H
