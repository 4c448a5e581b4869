//===- TableMemory.h - Tables as arguments of functions --------*- C++ -*-===//
//
// In the reference program a table is memory of the caller.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_LOWERREFERENCE_TABLEMEMORY_H
#define NEUROSHARD_LIB_CONVERSION_LOWERREFERENCE_TABLEMEMORY_H

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/Optimizer.h"

namespace neuroshard {

/// A table, whose op the lowering erases.
struct TableInfo {
  int64_t rows = 0;
  int64_t dim = 0;
  mlir::Type elementType;
  std::optional<ir::OptimizerAttr> optimizer;
};
using TableInfos = llvm::DenseMap<mlir::StringAttr, TableInfo>;

TableInfos collectTables(mlir::ModuleOp module);

/// Gives every function the tables that it, or a function it calls, uses.
mlir::LogicalResult addTableArguments(mlir::ModuleOp module);

/// The memory of one table in one function.
struct TableMemory {
  mlir::Value weights; ///< memref<rows x dim x element>.
  llvm::SmallVector<mlir::Value, kMaxStates>
      states; ///< f32; only where updated.
};

/// The memory of `table` in the function that `user` is in.
TableMemory getTableMemory(mlir::Operation *user, mlir::StringAttr table);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_LOWERREFERENCE_TABLEMEMORY_H
