//===- LookupVerifier.cpp - Rules every lookup obeys ----------------------===//

#include "LookupVerifier.h"

#include "neuroshard/Support/ClosestName.h"
#include "neuroshard/Support/Printable.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace neuroshard::ir;

LogicalResult neuroshard::ir::verifyElementType(Operation *op, Type type) {
  if (type.isF32() || type.isF16() || type.isBF16() || isa<QuantizedType>(type))
    return success();
  return op->emitOpError("element type must be f32, f16, bf16 or a "
                         "'!neuroshard.quantized', got: ")
         << type;
}

LogicalResult neuroshard::ir::verifyLookup(Operation *op, LookupAttr lookup,
                                           JaggedType ids) {
  if (!ids.indexOf(lookup.getFeature()))
    return op->emitOpError("reads feature ")
           << lookup.getFeature() << ", which its ids do not have: " << ids;
  if (lookup.getWeighted() && !ids.getWeighted())
    return op->emitOpError("weighted lookup of feature ")
           << lookup.getFeature() << " needs weighted ids, got: " << ids;
  if (lookup.getWeighted() && lookup.getPooling() != Pooling::Sum)
    return op->emitOpError("per-sample weights are defined for 'sum' only, "
                           "got: '")
           << stringifyPooling(lookup.getPooling()) << "'";
  return success();
}

LogicalResult neuroshard::ir::verifyAllWeighted(Operation *op,
                                                ArrayAttr lookups) {
  for (LookupAttr lookup : lookupsOf(lookups))
    if (!lookup.getWeighted())
      return op->emitOpError("lookup of feature ")
             << lookup.getFeature() << " must be weighted";
  return success();
}

/// The tables that an op can name.
static std::vector<std::string> tablesNear(Operation *op) {
  std::vector<std::string> names;
  if (Operation *scope = SymbolTable::getNearestSymbolTable(op))
    for (TableOp table : scope->getRegion(0).getOps<TableOp>())
      names.push_back(table.getSymName().str());
  return names;
}

FailureOr<TableOp>
neuroshard::ir::resolveTable(Operation *op, FlatSymbolRefAttr table,
                             SymbolTableCollection &symbols) {
  auto tableOp = symbols.lookupNearestSymbolFrom<TableOp>(op, table);
  if (tableOp)
    return tableOp;
  InFlightDiagnostic diagnostic = op->emitOpError("'")
                                  << neuroshard::printable(table.getValue())
                                  << "' is not a table";
  if (Operation *other = symbols.lookupNearestSymbolFrom(op, table))
    diagnostic.attachNote(other->getLoc()) << "the symbol is defined here";
  else
    diagnostic << ", and no other symbol"
               << didYouMean(table.getValue(), tablesNear(op));
  return diagnostic;
}

LogicalResult neuroshard::ir::verifyLookupRows(Operation *op, LookupAttr lookup,
                                               Type rows,
                                               SymbolTableCollection &symbols) {
  FailureOr<TableOp> table = resolveTable(op, lookup.getTable(), symbols);
  if (failed(table))
    return failure();
  if (lookup.getPaddingIdx() && (*lookup.getPaddingIdx() < 0 ||
                                 *lookup.getPaddingIdx() >= table->getRows()))
    return op->emitOpError("padding_idx must be a row of table '")
           << neuroshard::printable(table->getSymName()) << "' with "
           << table->getRows() << " rows, got: " << *lookup.getPaddingIdx();
  auto tensor = dyn_cast<RankedTensorType>(rows);
  if (!tensor || tensor.getRank() != 2)
    return op->emitOpError("rows must be a 2-D tensor, got: ") << rows;
  if (tensor.getDimSize(1) == table->getDim())
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError("rows of table '")
                                  << neuroshard::printable(table->getSymName())
                                  << "' have " << table->getDim()
                                  << " columns, got: " << rows;
  diagnostic.attachNote(table->getLoc()) << "the table is defined here";
  return diagnostic;
}

LogicalResult neuroshard::ir::verifyLookups(Operation *op, ArrayAttr lookups,
                                            TypeRange rows,
                                            SymbolTableCollection &symbols) {
  for (auto [lookup, type] : llvm::zip(lookupsOf(lookups), rows)) {
    auto dist = dyn_cast<DistType>(type);
    Type rowType = dist ? dist.getType() : type;
    if (failed(verifyLookupRows(op, lookup, rowType, symbols)))
      return failure();
  }
  return success();
}

LogicalResult neuroshard::ir::verifyCounts(Operation *op, ArrayAttr lookups,
                                           size_t values,
                                           llvm::StringRef valuesName) {
  if (lookups.empty())
    return op->emitOpError("must have at least one lookup");
  if (lookups.size() != values)
    return op->emitOpError("has ")
           << lookups.size() << " lookups but " << values << " " << valuesName;
  return success();
}

void neuroshard::ir::addTableEffects(
    ArrayAttr lookups, MemoryEffects::Effect *effect,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  llvm::SmallPtrSet<const void *, 8> seen;
  for (LookupAttr lookup : lookupsOf(lookups))
    if (seen.insert(lookup.getTable().getAsOpaquePointer()).second)
      effects.emplace_back(effect, lookup.getTable(), TableResource::get());
}
