//===- OpAssemblyFormat.cpp - Custom directives of the ops' text form -----===//
//
// The generated op classes parse and print themselves by these.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace neuroshard::ir;

/// [private|public|nested]
static ParseResult parseVisibility(OpAsmParser &parser,
                                   StringAttr &visibility) {
  llvm::StringRef keyword;
  if (failed(parser.parseOptionalKeyword(&keyword,
                                         {"private", "public", "nested"})))
    return success();
  visibility = parser.getBuilder().getStringAttr(keyword);
  return success();
}

static void printVisibility(OpAsmPrinter &printer, Operation *,
                            StringAttr visibility) {
  if (visibility)
    printer << " " << visibility.getValue();
}

/// rows x dim x element type
static ParseResult parseTableShape(OpAsmParser &parser, IntegerAttr &rows,
                                   IntegerAttr &dim, TypeAttr &elementType) {
  int64_t rowCount, columnCount;
  Type type;
  if (parser.parseInteger(rowCount) || parser.parseKeyword("x") ||
      parser.parseInteger(columnCount) || parser.parseKeyword("x") ||
      parser.parseType(type))
    return failure();
  rows = parser.getBuilder().getI64IntegerAttr(rowCount);
  dim = parser.getBuilder().getI64IntegerAttr(columnCount);
  elementType = TypeAttr::get(type);
  return success();
}

static void printTableShape(OpAsmPrinter &printer, Operation *,
                            IntegerAttr rows, IntegerAttr dim,
                            TypeAttr elementType) {
  printer << rows.getInt() << " x " << dim.getInt() << " x " << elementType;
}

/// dim x element type
static ParseResult parseSlotShape(OpAsmParser &parser, IntegerAttr &dim,
                                  TypeAttr &elementType) {
  int64_t columnCount;
  Type type;
  if (parser.parseInteger(columnCount) || parser.parseKeyword("x") ||
      parser.parseType(type))
    return failure();
  dim = parser.getBuilder().getI64IntegerAttr(columnCount);
  elementType = TypeAttr::get(type);
  return success();
}

static void printSlotShape(OpAsmPrinter &printer, Operation *, IntegerAttr dim,
                           TypeAttr elementType) {
  printer << dim.getInt() << " x " << elementType;
}

/// [begin, end)
static ParseResult parseHalfOpen(OpAsmParser &parser, IntegerAttr &begin,
                                 IntegerAttr &end) {
  int64_t first, last;
  if (parser.parseLSquare() || parser.parseInteger(first) ||
      parser.parseComma() || parser.parseInteger(last) || parser.parseRParen())
    return failure();
  begin = parser.getBuilder().getI64IntegerAttr(first);
  end = parser.getBuilder().getI64IntegerAttr(last);
  return success();
}

static void printHalfOpen(OpAsmPrinter &printer, Operation *, IntegerAttr begin,
                          IntegerAttr end) {
  printer << "[" << begin.getInt() << ", " << end.getInt() << ")";
}

#define GET_OP_CLASSES
#include "neuroshard/Dialect/NeuroShardOps.cpp.inc"
