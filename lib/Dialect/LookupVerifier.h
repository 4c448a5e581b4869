//===- LookupVerifier.h - Rules every lookup obeys -------------*- C++ -*-===//
//
// The rules shared by all ops that carry lookups, at every level.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_DIALECT_LOOKUPVERIFIER_H
#define NEUROSHARD_LIB_DIALECT_LOOKUPVERIFIER_H

#include "neuroshard/Dialect/NeuroShard.h"

namespace neuroshard::ir {

/// Checks that a table may have elements of this type.
mlir::LogicalResult verifyElementType(mlir::Operation *op, mlir::Type type);

/// Checks that the elements of a table may have this type.
mlir::LogicalResult verifyElementType(mlir::Operation *op, mlir::Type type);

/// Checks that the ids have the feature, and weights where the lookup needs
/// them, and that pooling and weights go together.
mlir::LogicalResult verifyLookup(mlir::Operation *op, LookupAttr lookup,
                                 JaggedType ids);

/// Checks that every lookup is weighted, so that its weights have gradients.
mlir::LogicalResult verifyAllWeighted(mlir::Operation *op,
                                      mlir::ArrayAttr lookups);

/// Checks that the table exists, that `padding_idx` is one of its rows and that
/// `rows` has its columns.
mlir::LogicalResult verifyLookupRows(mlir::Operation *op, LookupAttr lookup,
                                     mlir::Type rows,
                                     mlir::SymbolTableCollection &symbols);

/// The table of that name; an error on `op` if there is none.
mlir::FailureOr<TableOp> resolveTable(mlir::Operation *op,
                                      mlir::FlatSymbolRefAttr table,
                                      mlir::SymbolTableCollection &symbols);

/// verifyLookupRows() for each lookup and its type of rows.
mlir::LogicalResult verifyLookups(mlir::Operation *op, mlir::ArrayAttr lookups,
                                  mlir::TypeRange rows,
                                  mlir::SymbolTableCollection &symbols);

/// Checks that there are as many values as lookups, and at least one.
mlir::LogicalResult verifyCounts(mlir::Operation *op, mlir::ArrayAttr lookups,
                                 size_t values, llvm::StringRef valuesName);

/// The lookups as attributes of their type.
inline auto lookupsOf(mlir::ArrayAttr lookups) {
  return lookups.getAsRange<LookupAttr>();
}

/// Appends a read or write effect on each lookup's table, once per table.
void addTableEffects(mlir::ArrayAttr lookups,
                     mlir::MemoryEffects::Effect *effect,
                     llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<
                         mlir::MemoryEffects::Effect>> &effects);

} // namespace neuroshard::ir

#endif // NEUROSHARD_LIB_DIALECT_LOOKUPVERIFIER_H
