//===- TableSources.h - Arguments and constants with table rows -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_TABLESOURCES_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_TABLESOURCES_H

#include "Found/FoundLookup.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace neuroshard::raising {

/// An argument of a function, a constant or a global of the module.
struct TableSource {
  /// The argument or the constant's result; null for a global.
  mlir::Value value;
  /// The op that defines the global; null for the others.
  mlir::Operation *global = nullptr;
  /// rows x dim
  mlir::RankedTensorType type;
  /// The rows of a constant or of a global that has a value.
  mlir::Attribute contents;

  void *key() const {
    return global ? static_cast<void *>(global) : value.getAsOpaquePointer();
  }
};

/// The type of a tensor, also of one whose dialect is not registered
/// (`!torch.vtensor<[100,64],f32>`); null if `type` is none.
mlir::RankedTensorType builtinTensor(mlir::Type type);

/// Whether `tensor`, or a buffer, is behind casts an argument of a function, a
/// constant or loaded from a global, and not computed.
bool isStored(mlir::Value tensor);

/// The source of `table` behind casts, or the reason why it cannot be a table.
std::optional<TableSource> sourceOf(mlir::Value table, std::string &reason);

/// Why `source` cannot become a table where `reads` are the operands by which
/// lookups read it; empty if it can. All that reads its rows must be lookups.
std::string whyNotTable(const TableSource &source,
                        const llvm::DenseSet<mlir::OpOperand *> &reads);

/// Erases what is left of a source when all lookups are raised: the ops that
/// load it, the global. Arguments stay, without uses.
void eraseSource(const TableSource &source);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_TABLESOURCES_H
