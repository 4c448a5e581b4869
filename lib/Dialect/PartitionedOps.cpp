//===- PartitionedOps.cpp - SPMD functions and device programs ------------===//

#include "CollectiveEffects.h"

#include "LookupVerifier.h"
#include "neuroshard/Support/Printable.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace neuroshard::ir;

static FailureOr<ExchangeOp> resolveExchange(Operation *op,
                                             FlatSymbolRefAttr exchange,
                                             SymbolTableCollection &symbols) {
  if (auto found = symbols.lookupNearestSymbolFrom<ExchangeOp>(op, exchange))
    return found;
  return op->emitOpError("'") << neuroshard::printable(exchange.getValue())
                              << "' is not an exchange";
}

/// Checks that `types` are the types of the exchange's results, in order.
static LogicalResult verifyResults(Operation *op, FlatSymbolRefAttr exchange,
                                   TypeRange types, llvm::StringRef what,
                                   SymbolTableCollection &symbols) {
  FailureOr<ExchangeOp> found = resolveExchange(op, exchange, symbols);
  if (failed(found))
    return failure();
  ArrayAttr results = found->getResults();
  if (results.size() != types.size())
    return op->emitOpError("has ") << types.size() << " " << what
                                   << ", the exchange has " << results.size();
  for (auto [type, result] :
       llvm::zip(types, results.getAsValueRange<TypeAttr>()))
    if (type != result)
      return op->emitOpError()
             << what << " must have the exchange's types, got " << type
             << " for " << result;
  return success();
}

//===----------------------------------------------------------------------===//
// ExchangeOp
//===----------------------------------------------------------------------===//

LogicalResult ExchangeOp::verify() {
  if (failed(verifyCounts(*this, getLookups(), getResults().size(), "results")))
    return failure();
  auto ids = cast<JaggedType>(getInput());
  for (LookupAttr lookup : lookupsOf(getLookups()))
    if (failed(verifyLookup(*this, lookup, ids)))
      return failure();
  return success();
}

LogicalResult ExchangeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<PlanOp>(*this, getPlanAttr()))
    return emitOpError("'")
           << neuroshard::printable(getPlan()) << "' is not a plan";
  SmallVector<Type> rows(getResults().getAsValueRange<TypeAttr>());
  return verifyLookups(*this, getLookups(), rows, symbols);
}

RankedTensorType ExchangeOp::getJoinedResult() {
  SmallVector<RankedTensorType> types = llvm::map_to_vector(
      getResults().getAsValueRange<TypeAttr>(),
      [](Type type) { return cast<RankedTensorType>(type); });
  bool arePooled = llvm::all_of(lookupsOf(getLookups()), [](LookupAttr lookup) {
    return lookup.getPooling() != Pooling::None;
  });
  int64_t dim = 0;
  for (RankedTensorType type : types) {
    if (type.getElementType() != types.front().getElementType() ||
        type.getDimSize(0) != types.front().getDimSize(0))
      return {};
    dim += type.getDimSize(1);
  }
  if (!arePooled || types.empty())
    return {};
  return RankedTensorType::get({types.front().getDimSize(0), dim},
                               types.front().getElementType());
}

//===----------------------------------------------------------------------===//
// DeviceProgramOp, LocalTableOp, LocalLookupOp
//===----------------------------------------------------------------------===//

LogicalResult DeviceProgramOp::verify() {
  llvm::SmallSet<int64_t, 8> seen;
  if (getDevices().empty())
    return emitOpError("must be for at least one device");
  for (int64_t device : getDevices())
    if (device < 0 || !seen.insert(device).second)
      return emitOpError("devices must be distinct and not negative, got: ")
             << device;
  int64_t numSlots = 0;
  for (Operation &op : *getBody().begin()) {
    if (auto table = dyn_cast<LocalTableOp>(op)) {
      if (table.getSlot() != numSlots++)
        return table.emitOpError(
                   "slots must be numbered from 0 in order, got: ")
               << table.getSlot();
      continue;
    }
    auto lookup = dyn_cast<LocalLookupOp>(op);
    if (!lookup)
      return op.emitOpError("is not allowed in a device program, which holds "
                            "local tables and lookups only");
    int64_t slot = lookup.getSlot();
    if (slot < 0 || slot >= numSlots)
      return lookup.emitOpError("slot ") << slot << " is not declared before";
  }
  return success();
}

template <typename OpT>
static LogicalResult verifyBindings(OpT op, size_t bindings) {
  auto program = cast<DeviceProgramOp>(op->getParentOp());
  if (bindings == program.getDevices().size())
    return success();
  return op.emitOpError("must bind something for each of the program's ")
         << program.getDevices().size() << " devices, got: " << bindings;
}

LogicalResult LocalTableOp::verify() {
  if (failed(verifyElementType(*this, getElementType())))
    return failure();
  if (getDim() < 1 || getDim() > getTableDim())
    return emitOpError("dim must be in [1, ")
           << getTableDim() << "], got: " << getDim();
  return verifyBindings(*this, getShards().size());
}

LogicalResult LocalLookupOp::verify() {
  return verifyBindings(*this, getBinds().size());
}

LogicalResult LocalLookupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<ExchangeOp> exchange =
      resolveExchange(*this, getExchangeAttr(), symbols);
  if (failed(exchange))
    return failure();
  int64_t numLookups = exchange->getLookups().size();
  for (int64_t bind : getBinds())
    if (bind < 0 || bind >= numLookups)
      return emitOpError("binds lookup ")
             << bind << ", the exchange has " << numLookups;
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Checks that `ids` has the type of the exchange's input.
static LogicalResult verifyInput(Operation *op, FlatSymbolRefAttr exchange,
                                 Type ids, SymbolTableCollection &symbols) {
  FailureOr<ExchangeOp> found = resolveExchange(op, exchange, symbols);
  if (failed(found))
    return failure();
  if (found->getInput() == ids)
    return success();
  return op->emitOpError("takes ids of type ")
         << ids << ", but its exchange of type " << found->getInput();
}

LogicalResult RouteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyInput(*this, getExchangeAttr(), getIds().getType(), symbols);
}

void RouteOp::getEffects(Effects &effects) { addCollectiveEffects(effects); }

LogicalResult RunLookupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return resolveExchange(*this, getExchangeAttr(), symbols);
}

void RunLookupOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}

LogicalResult
ExchangeResultsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyResults(*this, getExchangeAttr(), getResults().getTypes(),
                       "results", symbols);
}

void ExchangeResultsOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}

LogicalResult
ExchangeJoinedResultsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<ExchangeOp> exchange =
      resolveExchange(*this, getExchangeAttr(), symbols);
  if (failed(exchange))
    return failure();
  RankedTensorType expected = exchange->getJoinedResult();
  if (!expected)
    return emitOpError("needs an exchange of pooled lookups with results of "
                       "one element type and number of rows");
  if (getType() == expected)
    return success();
  return emitOpError("must have the columns of all lookups, ")
         << expected << ", got: " << getType();
}

void ExchangeJoinedResultsOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}

LogicalResult
ExchangeGradientsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyResults(*this, getExchangeAttr(), getGradients().getTypes(),
                       "gradients", symbols);
}

void ExchangeGradientsOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}

LogicalResult
RunWeightsGradientOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyInput(*this, getExchangeAttr(), getIds().getType(), symbols);
}

void RunWeightsGradientOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}

LogicalResult RunUpdateOp::verify() {
  if (getExchanges().size() == getRouted().size())
    return success();
  return emitOpError("has ") << getExchanges().size() << " exchanges but "
                             << getRouted().size() << " routed ids";
}

LogicalResult RunUpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto exchange : getExchanges().getAsRange<FlatSymbolRefAttr>())
    if (failed(resolveExchange(*this, exchange, symbols)))
      return failure();
  return success();
}

void RunUpdateOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}

void ReleaseOp::getEffects(Effects &effects) { addCollectiveEffects(effects); }
