//===- KeepEntry.h - The one entry of a module ------------------*- C++ -*-===//

#ifndef NEUROSHARD_TRANSFORMS_KEEPENTRY_H
#define NEUROSHARD_TRANSFORMS_KEEPENTRY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Whether the function has an op that looks up rows.
bool hasLookup(mlir::func::FuncOp function);

/// Erases the functions with lookups that are not the entry: a step serves one
/// entry. An error if the module has no such function with a body, or if one of
/// the others is called by a function that stays.
mlir::LogicalResult keepEntry(mlir::ModuleOp module, llvm::StringRef entry);

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_KEEPENTRY_H
