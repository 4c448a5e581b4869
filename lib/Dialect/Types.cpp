//===- Types.cpp - Types of the dialect -----------------------------------===//

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace neuroshard::ir;

/// Bytecode before version 9 has, as text, the plan in front of the type;
/// BytecodeInterface gives it to the step's function.
static ParseResult parseLogicalType(AsmParser &parser, Type &type) {
  StringAttr plan;
  if (succeeded(parser.parseOptionalSymbolName(plan)) && parser.parseComma())
    return failure();
  return parser.parseType(type);
}

static void printLogicalType(AsmPrinter &printer, Type type) {
  printer << type;
}

#define GET_TYPEDEF_CLASSES
#include "neuroshard/Dialect/NeuroShardTypes.cpp.inc"

void NeuroShardDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "neuroshard/Dialect/NeuroShardTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// JaggedType
//===----------------------------------------------------------------------===//

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// `seen`: the features before it.
static LogicalResult verifyFeature(EmitError emitError, StringAttr feature,
                                   llvm::DenseSet<StringAttr> &seen) {
  if (feature.empty())
    return emitError() << "feature names must not be empty";
  if (!seen.insert(feature).second)
    return emitError() << "feature names must be unique, got " << feature
                       << " twice";
  return success();
}

static LogicalResult verifyIdType(EmitError emitError, Type idType) {
  if (!idType.isSignlessInteger(32) && !idType.isSignlessInteger(64))
    return emitError() << "ids must be i32 or i64, got: " << idType;
  return success();
}

LogicalResult JaggedType::verify(EmitError emitError,
                                 ArrayRef<StringAttr> features, Type idType,
                                 bool) {
  if (features.empty())
    return emitError() << "jagged type must have at least one feature";
  llvm::DenseSet<StringAttr> seen;
  for (StringAttr feature : features)
    if (failed(verifyFeature(emitError, feature, seen)))
      return failure();
  return verifyIdType(emitError, idType);
}

std::optional<int64_t> JaggedType::indexOf(StringAttr feature) const {
  const auto *it = llvm::find(getFeatures(), feature);
  if (it == getFeatures().end())
    return std::nullopt;
  return it - getFeatures().begin();
}

Type JaggedType::parse(AsmParser &parser) {
  SmallVector<StringAttr> features;
  llvm::DenseSet<StringAttr> seen;
  Type idType;
  // Errors point at the part that is wrong, and at the list if it is empty.
  llvm::SMLoc place;
  auto emitError = [&] { return parser.emitError(place); };
  auto parseFeature = [&]() -> ParseResult {
    std::string name;
    place = parser.getCurrentLocation();
    if (parser.parseString(&name))
      return failure();
    features.push_back(StringAttr::get(parser.getContext(), name));
    return verifyFeature(emitError, features.back(), seen);
  };
  if (parser.parseLess())
    return {};
  llvm::SMLoc list = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseFeature) ||
      parser.parseComma())
    return {};
  place = parser.getCurrentLocation();
  if (parser.parseType(idType) || failed(verifyIdType(emitError, idType)))
    return {};
  bool weighted = succeeded(parser.parseOptionalComma());
  if (weighted && parser.parseKeyword("weighted"))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<JaggedType>(list, parser.getContext(), features,
                                       idType, weighted);
}

void JaggedType::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getFeatures(), printer, [&](StringAttr name) {
    printer.printAttributeWithoutType(name);
  });
  printer << "], " << getIdType();
  if (getWeighted())
    printer << ", weighted";
  printer << ">";
}

//===----------------------------------------------------------------------===//
// QuantizedType
//===----------------------------------------------------------------------===//

Type QuantizedType::parse(AsmParser &parser) {
  llvm::SMLoc place;
  StringRef name;
  if (parser.parseLess())
    return {};
  place = parser.getCurrentLocation();
  if (parser.parseKeyword(&name) || parser.parseGreater())
    return {};
  std::optional<neuroshard::ElementType> format =
      neuroshard::parseElementType(name);
  if (!format || !isQuantized(*format)) {
    parser.emitError(place, "expected int8, int4 or fp8, got: ") << name;
    return {};
  }
  return get(parser.getContext(), *format);
}

void QuantizedType::print(AsmPrinter &printer) const {
  printer << "<" << toString(getFormat()) << ">";
}

//===----------------------------------------------------------------------===//
// DistType
//===----------------------------------------------------------------------===//

LogicalResult
DistType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Type type,
                 Distribution) {
  if (!isa<JaggedType, RowsType, RankedTensorType>(type))
    return emitError() << "only jagged ids, rows and ranked tensors can be "
                          "distributed, got: "
                       << type;
  return success();
}
