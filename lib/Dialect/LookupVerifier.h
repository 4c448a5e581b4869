//===- LookupVerifier.h - Rules every lookup obeys -------------*- C++ -*-===//
//
// The rules shared by all ops that carry lookups, at every level.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_DIALECT_LOOKUPVERIFIER_H
#define NEUROSHARD_LIB_DIALECT_LOOKUPVERIFIER_H

#include "neuroshard/Dialect/NeuroShard.h"

namespace neuroshard::ir {

/// The feature exists, weights fit, padding is allowed.
mlir::LogicalResult verifyLookup(mlir::Operation *op, LookupAttr lookup,
                                 JaggedType ids);

/// Every lookup takes part in the gradient of per-sample weights.
mlir::LogicalResult verifyAllWeighted(mlir::Operation *op,
                                      mlir::ArrayAttr lookups);

/// Also: `rows` is what the lookup of a table of `dim` columns gives for `ids`.
mlir::LogicalResult verifyLookupRows(mlir::Operation *op, LookupAttr lookup,
                                     mlir::Type rows,
                                     mlir::SymbolTableCollection &symbols);

/// The table of a symbol use, or an error on `op`.
mlir::FailureOr<TableOp> resolveTable(mlir::Operation *op,
                                      mlir::FlatSymbolRefAttr table,
                                      mlir::SymbolTableCollection &symbols);

/// Every lookup of the array, with one row type each.
mlir::LogicalResult verifyLookups(mlir::Operation *op, mlir::ArrayAttr lookups,
                                  mlir::TypeRange rows,
                                  mlir::SymbolTableCollection &symbols);

/// `lookups` and `values` have the same, nonzero number.
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
