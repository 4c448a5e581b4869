//===- AttributeSyntax.cpp - Parts of attributes as text ------------------===//

#include "AttributeSyntax.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;

FloatAttr neuroshard::ir::f64(MLIRContext *context, double value) {
  return FloatAttr::get(Float64Type::get(context), value);
}

void neuroshard::ir::printNumber(AsmPrinter &printer, FloatAttr value) {
  printer.printFloat(value.getValue());
}

ParseResult neuroshard::ir::parsePairs(
    AsmParser &parser, llvm::StringRef known, bool first,
    llvm::function_ref<std::optional<ParseResult>(llvm::StringRef)>
        parseValue) {
  llvm::SmallVector<std::string> seen;
  while (failed(parser.parseOptionalGreater())) {
    llvm::StringRef key;
    if ((!first && parser.parseComma()))
      return failure();
    first = false;
    llvm::SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key))
      return failure();
    if (llvm::is_contained(seen, key))
      return parser.emitError(loc) << "'" << key << "' given twice";
    seen.push_back(key.str());
    // A unit key has no value; its handler parses nothing.
    std::optional<ParseResult> result = parseValue(key);
    if (!result)
      return parser.emitError(loc)
             << "unknown key '" << key << "', expected one of: " << known;
    if (failed(*result))
      return failure();
  }
  return success();
}

ParseResult neuroshard::ir::parseNumber(AsmParser &parser, FloatAttr &value) {
  double number;
  if (parser.parseEqual() || parser.parseFloat(number))
    return failure();
  value = f64(parser.getContext(), number);
  return success();
}

LogicalResult neuroshard::ir::checkNonNegative(EmitError emitError,
                                               llvm::StringRef name,
                                               FloatAttr value) {
  double number = value.getValueAsDouble();
  if (std::isfinite(number) && number >= 0)
    return success();
  return emitError() << "'" << name
                     << "' must be finite and not negative, got: " << number;
}
