//===- Types.cpp - Types of the dialect -----------------------------------===//

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace neuroshard::ir;

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

LogicalResult
JaggedType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   ArrayRef<StringAttr> features, Type idType, bool) {
  if (features.empty())
    return emitError() << "jagged type must have at least one feature";
  llvm::DenseSet<StringAttr> seen;
  for (StringAttr feature : features) {
    if (feature.empty())
      return emitError() << "feature names must not be empty";
    if (!seen.insert(feature).second)
      return emitError() << "feature names must be unique, got " << feature
                         << " twice";
  }
  if (!idType.isSignlessInteger(32) && !idType.isSignlessInteger(64))
    return emitError() << "ids must be i32 or i64, got: " << idType;
  return success();
}

std::optional<int64_t> JaggedType::indexOf(StringAttr feature) const {
  const auto *it = llvm::find(getFeatures(), feature);
  if (it == getFeatures().end())
    return std::nullopt;
  return it - getFeatures().begin();
}

Type JaggedType::parse(AsmParser &parser) {
  SmallVector<StringAttr> features;
  Type idType;
  auto parseFeature = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    features.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseFeature) ||
      parser.parseComma() || parser.parseType(idType))
    return {};
  bool weighted = succeeded(parser.parseOptionalComma());
  if (weighted && parser.parseKeyword("weighted"))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<JaggedType>(parser.getCurrentLocation(),
                                       parser.getContext(), features, idType,
                                       weighted);
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
// DistType
//===----------------------------------------------------------------------===//

LogicalResult
DistType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 FlatSymbolRefAttr, Type type, Distribution) {
  if (!isa<JaggedType, RowsType, RankedTensorType>(type))
    return emitError() << "only jagged ids, rows and ranked tensors can be "
                          "distributed, got: "
                       << type;
  return success();
}
