//===- LogicalOps.cpp - Tables, ids and lookups ---------------------------===//

#include "LookupVerifier.h"

#include "neuroshard/Dialect/ElementTypes.h"
#include "neuroshard/Support/Printable.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace neuroshard::ir;

//===----------------------------------------------------------------------===//
// TableOp
//===----------------------------------------------------------------------===//

LogicalResult TableOp::verify() {
  Type type = getElementType();
  if (failed(verifyElementType(*this, type)))
    return failure();
  if (!getOptimizer())
    return success();
  if (isa<QuantizedType>(type))
    return emitOpError("of ") << type
                              << " is served and not trained: it must have no "
                                 "optimizer, got: "
                              << *getOptimizer();
  std::optional<neuroshard::SettingError> error =
      settingError(getOptimizer()->getOptimizer(), elementTypeOf(type));
  if (error)
    return emitOpError("'") << error->setting << "': " << error->message;
  return success();
}

void TableOp::build(OpBuilder &builder, OperationState &state,
                    llvm::StringRef name, int64_t rows, int64_t dim,
                    Type elementType, OptimizerAttr optimizer) {
  build(builder, state, name, builder.getStringAttr("private"), rows, dim,
        elementType, optimizer, AccessAttr(), /*hashed=*/false);
}

//===----------------------------------------------------------------------===//
// PackOp, FromKeyedOp, UnpackOp, NumIdsOp
//===----------------------------------------------------------------------===//

/// The type of jagged ids that are made of `ids`.
static JaggedType jaggedOf(OpBuilder &builder,
                           ArrayRef<llvm::StringRef> features, Value ids,
                           bool weighted) {
  SmallVector<StringAttr> names =
      llvm::map_to_vector(features, [&](llvm::StringRef name) {
        return builder.getStringAttr(name);
      });
  return JaggedType::get(builder.getContext(), names,
                         getElementTypeOrSelf(ids.getType()), weighted);
}

void PackOp::build(OpBuilder &builder, OperationState &state,
                   ArrayRef<llvm::StringRef> features, ValueRange ids,
                   ValueRange offsets, ValueRange weights) {
  build(builder, state,
        jaggedOf(builder, features, ids.front(), !weights.empty()), ids,
        offsets, weights);
}

void FromKeyedOp::build(OpBuilder &builder, OperationState &state,
                        ArrayRef<llvm::StringRef> features, Value ids,
                        Value offsets, Value weights) {
  build(builder, state,
        jaggedOf(builder, features, ids, static_cast<bool>(weights)), ids,
        offsets, weights);
}

void UnpackOp::build(OpBuilder &builder, OperationState &state, Value jagged,
                     llvm::StringRef feature) {
  auto type = cast<JaggedType>(jagged.getType());
  auto tensorOf = [](Type element) {
    return RankedTensorType::get({ShapedType::kDynamic}, element);
  };
  build(builder, state, tensorOf(type.getIdType()),
        tensorOf(builder.getI64Type()),
        type.getWeighted() ? tensorOf(builder.getF32Type()) : Type(), jagged,
        feature);
}

static LogicalResult verifyIdTypes(Operation *op, JaggedType jagged,
                                   TypeRange ids, bool hasWeights) {
  for (Type type : ids)
    if (cast<ShapedType>(type).getElementType() != jagged.getIdType())
      return op->emitOpError("ids must be of the jagged type's ")
             << jagged.getIdType() << ", got: " << type;
  if (hasWeights != jagged.getWeighted())
    return op->emitOpError(jagged.getWeighted()
                               ? "weighted ids need weights"
                               : "has weights, but its type is not weighted");
  return success();
}

LogicalResult PackOp::verify() {
  JaggedType type = getResult().getType();
  size_t numFeatures = type.getFeatures().size();
  if (getIds().size() != numFeatures || getOffsets().size() != numFeatures)
    return emitOpError("needs ids and offsets for each of ")
           << numFeatures << " features, got " << getIds().size() << " and "
           << getOffsets().size();
  if (!getWeights().empty() && getWeights().size() != numFeatures)
    return emitOpError("needs weights for each of ")
           << numFeatures << " features, got " << getWeights().size();
  int64_t entries = ShapedType::kDynamic; // of offsets, where they are static
  for (Type offsets : getOffsets().getTypes()) {
    int64_t size = cast<ShapedType>(offsets).getDimSize(0);
    if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(entries) &&
        size != entries)
      return emitOpError("offsets of all features must have batch + 1 "
                         "entries, got ")
             << entries << " and " << size;
    entries = ShapedType::isDynamic(size) ? entries : size;
  }
  return verifyIdTypes(*this, type, getIds().getTypes(), !getWeights().empty());
}

LogicalResult FromKeyedOp::verify() {
  return verifyIdTypes(*this, getResult().getType(), getIds().getType(),
                       static_cast<bool>(getWeights()));
}

static LogicalResult verifyFeature(Operation *op, JaggedType type,
                                   StringAttr feature) {
  if (type.indexOf(feature))
    return success();
  return op->emitOpError("has no feature ") << feature << ": " << type;
}

LogicalResult UnpackOp::verify() {
  JaggedType type = getJagged().getType();
  if (failed(verifyFeature(*this, type, getFeatureAttr())))
    return failure();
  return verifyIdTypes(*this, type, getIds().getType(),
                       static_cast<bool>(getWeights()));
}

LogicalResult NumIdsOp::verify() {
  if (!getFeatureAttr())
    return success();
  return verifyFeature(*this, getJagged().getType(), getFeatureAttr());
}

//===----------------------------------------------------------------------===//
// LookupOp
//===----------------------------------------------------------------------===//

void LookupOp::build(OpBuilder &builder, OperationState &state,
                     neuroshard::Pooling pooling, TableOp table, Value ids,
                     llvm::StringRef feature) {
  auto rows = RankedTensorType::get({ShapedType::kDynamic, table.getDim()},
                                    builder.getF32Type());
  build(builder, state, rows, pooling, table.getSymName(), ids, feature,
        /*weighted=*/false, /*padding_idx=*/IntegerAttr(), FeatureAttr());
}

LookupAttr LookupOp::getLookup() {
  return LookupAttr::get(getContext(), getPooling(), getTableAttr(),
                         getFeatureAttr(), getWeighted(), getPaddingIdx());
}

LogicalResult LookupOp::verify() {
  return verifyLookup(*this, getLookup(), getIds().getType());
}

/// A static number of pooled rows is the batch, where the module says it.
static LogicalResult verifyBatch(LookupOp op) {
  RankedTensorType type = op.getResult().getType();
  auto module = op->getParentOfType<ModuleOp>();
  auto batch = module ? module->getAttrOfType<IntegerAttr>(
                            NeuroShardDialect::kBatchAttrName)
                      : IntegerAttr();
  if (op.getPooling() == neuroshard::Pooling::None || type.isDynamicDim(0) ||
      !batch || type.getDimSize(0) == batch.getInt())
    return success();
  return op.emitOpError("gives a row for each sample, of which there are ")
         << batch.getInt() << " ('neuroshard.batch'), got: " << type;
}

LogicalResult LookupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(
          verifyLookupRows(*this, getLookup(), getResult().getType(), symbols)))
    return failure();
  return verifyBatch(*this);
}

void LookupOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), getTableAttr(),
                       TableResource::get());
}

LogicalResult LookupOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  Value rows =
      getPooling() == Pooling::None
          ? NumIdsOp::create(builder, getLoc(), getIds(), getFeatureAttr())
                .getResult()
          : BatchSizeOp::create(builder, getLoc(), getIds()).getResult();
  auto type = cast<RankedTensorType>(getResult().getType());
  OpFoldResult numRows = type.isDynamicDim(0)
                             ? OpFoldResult(rows)
                             : builder.getIndexAttr(type.getDimSize(0));
  shapes.push_back({numRows, builder.getIndexAttr(type.getDimSize(1))});
  return success();
}

//===----------------------------------------------------------------------===//
// UpdateOp
//===----------------------------------------------------------------------===//

LogicalResult UpdateOp::verify() {
  if (failed(verifyCounts(*this, getLookups(), getGradients().size(),
                          "gradients")))
    return failure();
  for (auto [lookup, ids] :
       llvm::zip(lookupsOf(getLookups()), getIds().getTypes())) {
    if (lookup.getTable() != getTableAttr())
      return emitOpError("updates '")
             << neuroshard::printable(getTable()) << "', but has a lookup of '"
             << neuroshard::printable(lookup.getTable().getValue()) << "'";
    if (failed(verifyLookup(*this, lookup, cast<JaggedType>(ids))))
      return failure();
  }
  return success();
}

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<TableOp> table = resolveTable(*this, getTableAttr(), symbols);
  if (failed(table))
    return failure();
  if (!table->getOptimizer())
    return emitOpError("table '")
           << neuroshard::printable(getTable()) << "' has no optimizer";
  return verifyLookups(*this, getLookups(), getGradients().getTypes(), symbols);
}

void UpdateOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), getTableAttr(),
                       TableResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), getTableAttr(),
                       TableResource::get());
}

//===----------------------------------------------------------------------===//
// WeightsGradientOp
//===----------------------------------------------------------------------===//

LogicalResult WeightsGradientOp::verify() {
  if (failed(verifyCounts(*this, getLookups(), getGradients().size(),
                          "gradients")))
    return failure();
  for (LookupAttr lookup : lookupsOf(getLookups()))
    if (failed(verifyLookup(*this, lookup, getIds().getType())))
      return failure();
  return verifyAllWeighted(*this, getLookups());
}

LogicalResult
WeightsGradientOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLookups(*this, getLookups(), getGradients().getTypes(), symbols);
}

void WeightsGradientOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addTableEffects(getLookups(), MemoryEffects::Read::get(), effects);
}

LogicalResult
WeightsGradientOp::reifyResultShapes(OpBuilder &builder,
                                     ReifiedRankedShapedTypeDims &shapes) {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (!type.isDynamicDim(0)) {
    shapes.push_back({builder.getIndexAttr(type.getDimSize(0))});
    return success();
  }
  Value numIds = NumIdsOp::create(builder, getLoc(), getIds(), StringAttr());
  shapes.push_back({OpFoldResult(numIds)});
  return success();
}
