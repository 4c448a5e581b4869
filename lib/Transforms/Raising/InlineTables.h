//===- InlineTables.h - Functions that take tables --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_INLINETABLES_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_INLINETABLES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace neuroshard::raising {

/// Brings the body of each function for which `takesTable` is true to its
/// calls, and erases private ones that nothing names then. Functions with
/// several blocks, and those that call themselves, stay. Ops of dialects that
/// are not registered are copied like others: MLIR's inliner refuses them.
void inlineTables(mlir::ModuleOp module, mlir::SymbolTable &symbols,
                  llvm::function_ref<bool(mlir::func::FuncOp)> takesTable);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_INLINETABLES_H
