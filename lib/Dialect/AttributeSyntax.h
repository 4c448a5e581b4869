//===- AttributeSyntax.h - Parts of attributes as text ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_DIALECT_ATTRIBUTESYNTAX_H
#define NEUROSHARD_LIB_DIALECT_ATTRIBUTESYNTAX_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectImplementation.h"

#include <optional>

namespace neuroshard::ir {

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

mlir::FloatAttr f64(mlir::MLIRContext *context, double value);
void printNumber(mlir::AsmPrinter &printer, mlir::FloatAttr value);

/// Reads `key = value` pairs separated by commas up to `>`, each key at most
/// once. `parseValue(key)` reads one value, or returns nullopt for a key it
/// does not know. `first` says that no comma precedes the first pair.
mlir::ParseResult
parsePairs(mlir::AsmParser &parser, llvm::StringRef known, bool first,
           llvm::function_ref<std::optional<mlir::ParseResult>(llvm::StringRef)>
               parseValue);

/// "= number".
mlir::ParseResult parseNumber(mlir::AsmParser &parser, mlir::FloatAttr &value);

template <typename IntT>
mlir::ParseResult parseCount(mlir::AsmParser &parser, IntT &value) {
  int64_t number;
  if (parser.parseEqual() || parser.parseInteger(number))
    return mlir::failure();
  value = number;
  return mlir::success();
}

/// The number must be finite and not negative.
mlir::LogicalResult checkNonNegative(EmitError emitError, llvm::StringRef name,
                                     mlir::FloatAttr value);

} // namespace neuroshard::ir

#endif // NEUROSHARD_LIB_DIALECT_ATTRIBUTESYNTAX_H
