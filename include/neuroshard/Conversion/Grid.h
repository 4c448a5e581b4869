//===- Grid.h - Grids of devices on their way to native code ----*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_GRID_H
#define NEUROSHARD_CONVERSION_GRID_H

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/SymbolTable.h"

namespace neuroshard {

/// Whether the op is a `shard.grid` that no op of its symbol table refers to.
/// The topology has been made of it, and it has no code.
inline bool isUnusedGrid(mlir::Operation &op) {
  return mlir::isa<mlir::shard::GridOp>(op) &&
         mlir::SymbolTable::symbolKnownUseEmpty(&op, op.getParentOp());
}

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GRID_H
