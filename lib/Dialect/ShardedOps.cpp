//===- ShardedOps.cpp - Operations on distributed values ------------------===//

#include "CollectiveEffects.h"

#include "LookupVerifier.h"

using namespace mlir;
using namespace neuroshard::ir;

namespace {

LogicalResult expectDistribution(Operation *op, llvm::StringRef what,
                                 DistType type,
                                 ArrayRef<Distribution> allowed) {
  if (llvm::is_contained(allowed, type.getDistribution()))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << what << " must be distributed by ";
  llvm::interleave(
      allowed, [&](Distribution d) { diagnostic << stringifyDistribution(d); },
      [&] { diagnostic << " or "; });
  return diagnostic << ", got: " << type;
}

/// Checks that `ids` are jagged and have what the lookups read.
LogicalResult verifyIds(Operation *op, DistType ids, ArrayAttr lookups,
                        ArrayRef<Distribution> allowed) {
  auto jagged = dyn_cast<JaggedType>(ids.getType());
  if (!jagged)
    return op->emitOpError("ids must be distributed jagged ids, got: ") << ids;
  if (failed(expectDistribution(op, "ids", ids, allowed)))
    return failure();
  if (lookups.empty())
    return op->emitOpError("must have at least one lookup");
  for (LookupAttr lookup : lookupsOf(lookups))
    if (failed(verifyLookup(op, lookup, jagged)))
      return failure();
  return success();
}

/// Checks that there is one value per lookup.
LogicalResult verifyRows(Operation *op, llvm::StringRef what, TypeRange types,
                         ArrayAttr lookups, ArrayRef<Distribution> allowed) {
  if (failed(verifyCounts(op, lookups, types.size(), what)))
    return failure();
  for (Type type : types)
    if (failed(expectDistribution(op, what, cast<DistType>(type), allowed)))
      return failure();
  return success();
}

/// Checks that the lookups' tables exist.
LogicalResult verifyLookupTables(Operation *op, ArrayAttr lookups,
                                 SymbolTableCollection &symbols) {
  for (LookupAttr lookup : lookupsOf(lookups))
    if (failed(resolveTable(op, lookup.getTable(), symbols)))
      return failure();
  return success();
}

/// Checks that each lookup's ids have its feature and are on the same devices
/// as its gradients.
LogicalResult verifyUpdate(Operation *op, TypeRange ids, TypeRange gradients,
                           ArrayAttr lookups) {
  if (failed(verifyCounts(op, lookups, gradients.size(), "gradients")))
    return failure();
  for (auto [lookup, idType, gradientType] :
       llvm::zip(lookupsOf(lookups), ids, gradients)) {
    auto idDist = cast<DistType>(idType);
    auto gradientDist = cast<DistType>(gradientType);
    auto jagged = dyn_cast<JaggedType>(idDist.getType());
    if (!jagged)
      return op->emitOpError("ids must be distributed jagged ids, got: ")
             << idDist;
    if (failed(verifyLookup(op, lookup, jagged)) ||
        failed(expectDistribution(
            op, "ids", idDist, {Distribution::Owner, Distribution::Replica})) ||
        failed(expectDistribution(op, "gradients", gradientDist,
                                  {idDist.getDistribution()})))
      return failure();
  }
  return success();
}

LogicalResult verifyTables(Operation *op, ArrayAttr tables,
                           SymbolTableCollection &symbols) {
  for (auto table : tables.getAsRange<FlatSymbolRefAttr>())
    if (failed(resolveTable(op, table, symbols)))
      return failure();
  return success();
}

LogicalResult verifyRowsValue(Operation *op, DistType rows) {
  if (!isa<RowsType>(rows.getType()))
    return op->emitOpError("must be distributed rows, got: ") << rows;
  return expectDistribution(op, "rows", rows, {Distribution::Owner});
}

} // namespace

//===----------------------------------------------------------------------===//
// ScatterBatchOp and GatherBatchOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyBatchMove(Operation *op, Type logical,
                                     DistType dist) {
  if (dist.getType() != logical)
    return op->emitOpError("distributes ")
           << dist.getType() << ", but the value is " << logical;
  return expectDistribution(op, "value", dist, {Distribution::Batch});
}

LogicalResult ScatterBatchOp::verify() {
  return verifyBatchMove(*this, getInput().getType(), getResult().getType());
}

LogicalResult GatherBatchOp::verify() {
  return verifyBatchMove(*this, getResult().getType(), getInput().getType());
}

/// Splitting is the same each time.
OpFoldResult ScatterBatchOp::fold(FoldAdaptor) {
  auto gather = getInput().getDefiningOp<GatherBatchOp>();
  if (gather && gather.getInput().getType() == getResult().getType())
    return gather.getInput();
  return {};
}

OpFoldResult GatherBatchOp::fold(FoldAdaptor) {
  if (auto scatter = getInput().getDefiningOp<ScatterBatchOp>())
    return scatter.getInput();
  return {};
}

//===----------------------------------------------------------------------===//
// DistributeIdsOp
//===----------------------------------------------------------------------===//

LogicalResult DistributeIdsOp::verify() {
  DistType from = getIds().getType(), to = getResult().getType();
  if (from.getType() != to.getType())
    return emitOpError("result must distribute the same ids, got ")
           << from << " and " << to;
  if (failed(verifyIds(*this, from, getLookups(), {Distribution::Batch})))
    return failure();
  return expectDistribution(*this, "result", to,
                            {Distribution::Owner, Distribution::Replica});
}

LogicalResult
DistributeIdsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLookupTables(*this, getLookups(), symbols);
}

void DistributeIdsOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}

//===----------------------------------------------------------------------===//
// FusedLookupOp and CombineOp
//===----------------------------------------------------------------------===//

LogicalResult FusedLookupOp::verify() {
  DistType ids = getIds().getType();
  if (failed(verifyIds(*this, ids, getLookups(),
                       {Distribution::Owner, Distribution::Batch})))
    return failure();
  return verifyRows(*this, "results", getPartials().getTypes(), getLookups(),
                    {ids.getDistribution()});
}

LogicalResult FusedLookupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLookups(*this, getLookups(), getPartials().getTypes(), symbols);
}

void FusedLookupOp::getEffects(Effects &effects) {
  addTableEffects(getLookups(), MemoryEffects::Read::get(), effects);
}

LogicalResult CombineOp::verify() {
  DistType ids = getIds().getType();
  if (failed(verifyIds(*this, ids, getLookups(), {Distribution::Batch})) ||
      failed(verifyRows(*this, "partials", getPartials().getTypes(),
                        getLookups(), {Distribution::Owner})))
    return failure();
  return verifyRows(*this, "results", getResults().getTypes(), getLookups(),
                    {Distribution::Batch});
}

LogicalResult CombineOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLookups(*this, getLookups(), getResults().getTypes(), symbols);
}

void CombineOp::getEffects(Effects &effects) { addCollectiveEffects(effects); }

//===----------------------------------------------------------------------===//
// DistributeGradientsOp
//===----------------------------------------------------------------------===//

LogicalResult DistributeGradientsOp::verify() {
  DistType ids = getIds().getType();
  if (failed(verifyIds(*this, ids, getLookups(), {Distribution::Batch})) ||
      failed(verifyRows(*this, "gradients", getGradients().getTypes(),
                        getLookups(), {Distribution::Batch})))
    return failure();
  return verifyRows(*this, "results", getResults().getTypes(), getLookups(),
                    {Distribution::Owner, Distribution::Replica});
}

LogicalResult
DistributeGradientsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLookups(*this, getLookups(), getGradients().getTypes(), symbols);
}

void DistributeGradientsOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}

//===----------------------------------------------------------------------===//
// FusedUpdateOp and the phases of updates with an exchange
//===----------------------------------------------------------------------===//

LogicalResult FusedUpdateOp::verify() {
  return verifyUpdate(*this, getIds().getTypes(), getGradients().getTypes(),
                      getLookups());
}

LogicalResult FusedUpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLookups(*this, getLookups(), getGradients().getTypes(), symbols);
}

void FusedUpdateOp::getEffects(Effects &effects) {
  addTableEffects(getLookups(), MemoryEffects::Read::get(), effects);
  addTableEffects(getLookups(), MemoryEffects::Write::get(), effects);
}

LogicalResult ReduceRowsOp::verify() {
  if (failed(verifyUpdate(*this, getIds().getTypes(), getGradients().getTypes(),
                          getLookups())))
    return failure();
  return verifyRowsValue(*this, getRows().getType());
}

LogicalResult ReduceRowsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLookups(*this, getLookups(), getGradients().getTypes(), symbols);
}

void ReduceRowsOp::getEffects(Effects &effects) {
  addTableEffects(getLookups(), MemoryEffects::Read::get(), effects);
}

LogicalResult ExchangeCopiesOp::verify() {
  return verifyRowsValue(*this, getRows().getType());
}

LogicalResult
ExchangeCopiesOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyTables(*this, getTables(), symbols);
}

void ExchangeCopiesOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}

LogicalResult ExchangeNormsOp::verify() {
  return verifyRowsValue(*this, getRows().getType());
}

LogicalResult
ExchangeNormsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyTables(*this, getTables(), symbols);
}

void ExchangeNormsOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}

LogicalResult ApplyRowsOp::verify() {
  return verifyRowsValue(*this, getRows().getType());
}

LogicalResult ApplyRowsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyTables(*this, getTables(), symbols);
}

void ApplyRowsOp::getEffects(Effects &effects) {
  for (auto table : getTables().getAsRange<FlatSymbolRefAttr>()) {
    effects.emplace_back(MemoryEffects::Read::get(), table,
                         TableResource::get());
    effects.emplace_back(MemoryEffects::Write::get(), table,
                         TableResource::get());
  }
}

//===----------------------------------------------------------------------===//
// Gradient of per-sample weights
//===----------------------------------------------------------------------===//

/// One f32 per id.
static LogicalResult verifyWeights(Operation *op, llvm::StringRef what,
                                   DistType type) {
  auto tensor = dyn_cast<RankedTensorType>(type.getType());
  if (tensor && tensor.getRank() == 1 && tensor.getElementType().isF32())
    return success();
  return op->emitOpError() << what
                           << " must be a distributed 1-D tensor of f32, got: "
                           << type;
}

LogicalResult FusedWeightsGradientOp::verify() {
  DistType ids = getIds().getType();
  if (failed(verifyIds(*this, ids, getLookups(),
                       {Distribution::Owner, Distribution::Batch})) ||
      failed(verifyRows(*this, "gradients", getGradients().getTypes(),
                        getLookups(), {ids.getDistribution()})))
    return failure();
  if (failed(verifyAllWeighted(*this, getLookups())) ||
      failed(verifyWeights(*this, "result", getPartial().getType())))
    return failure();
  return expectDistribution(*this, "result", getPartial().getType(),
                            {ids.getDistribution()});
}

LogicalResult
FusedWeightsGradientOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLookups(*this, getLookups(), getGradients().getTypes(), symbols);
}

void FusedWeightsGradientOp::getEffects(Effects &effects) {
  addTableEffects(getLookups(), MemoryEffects::Read::get(), effects);
}

LogicalResult CombineWeightsGradientOp::verify() {
  DistType ids = getIds().getType();
  if (failed(verifyIds(*this, ids, getLookups(), {Distribution::Batch})))
    return failure();
  for (Type type : getPartials().getTypes()) {
    auto partial = cast<DistType>(type);
    if (failed(verifyWeights(*this, "partial", partial)) ||
        failed(expectDistribution(*this, "partial", partial,
                                  {Distribution::Owner, Distribution::Batch})))
      return failure();
  }
  if (failed(verifyAllWeighted(*this, getLookups())) ||
      failed(verifyWeights(*this, "result", getResult().getType())))
    return failure();
  return expectDistribution(*this, "result", getResult().getType(),
                            {Distribution::Batch});
}

LogicalResult
CombineWeightsGradientOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLookupTables(*this, getLookups(), symbols);
}

void CombineWeightsGradientOp::getEffects(Effects &effects) {
  addCollectiveEffects(effects);
}
