//===- JaggedFolds.cpp - Folding of ops on jagged ids ---------------------===//
//
// What is packed and taken apart again, and sizes that the packed tensors tell.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace neuroshard::ir;

/// The size of a 1-D tensor; nullopt where it is dynamic.
static std::optional<int64_t> staticSize(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.isDynamicDim(0))
    return std::nullopt;
  return type.getDimSize(0);
}

//===----------------------------------------------------------------------===//
// PackOp and UnpackOp
//===----------------------------------------------------------------------===//

/// The jagged value that `value` is result number `index` of an unpacking of
/// `feature` of; null if it is none.
static Value unpackedFrom(Value value, unsigned index, StringAttr feature) {
  auto result = dyn_cast<OpResult>(value);
  auto unpack = result ? dyn_cast<UnpackOp>(result.getOwner()) : UnpackOp();
  if (!unpack || result.getResultNumber() != index ||
      unpack.getFeatureAttr() != feature)
    return {};
  return unpack.getJagged();
}

/// pack of all features that were unpacked, in their order.
OpFoldResult PackOp::fold(FoldAdaptor) {
  JaggedType type = getResult().getType();
  Value whole;
  for (auto [index, feature] : llvm::enumerate(type.getFeatures())) {
    SmallVector<Value> parts = {getIds()[index], getOffsets()[index]};
    if (type.getWeighted())
      parts.push_back(getWeights()[index]);
    for (auto [number, part] : llvm::enumerate(parts)) {
      Value jagged = unpackedFrom(part, number, feature);
      if (!jagged || (whole && jagged != whole))
        return {};
      whole = jagged;
    }
  }
  return whole.getType() == type ? whole : Value();
}

/// The parts of one feature of what is unpacked, where an op packs them.
static SmallVector<Value> packedParts(UnpackOp op) {
  if (auto pack = op.getJagged().getDefiningOp<PackOp>()) {
    int64_t index = *pack.getResult().getType().indexOf(op.getFeatureAttr());
    SmallVector<Value> parts = {pack.getIds()[index], pack.getOffsets()[index]};
    if (op.getWeights())
      parts.push_back(pack.getWeights()[index]);
    return parts;
  }
  auto keyed = op.getJagged().getDefiningOp<FromKeyedOp>();
  if (!keyed || keyed.getResult().getType().getFeatures().size() != 1)
    return {};
  return llvm::to_vector(keyed.getOperands());
}

LogicalResult UnpackOp::fold(FoldAdaptor,
                             SmallVectorImpl<OpFoldResult> &results) {
  SmallVector<Value> parts = packedParts(*this);
  // Offsets of another type than those packed are a conversion.
  if (parts.empty() || !llvm::equal(TypeRange(parts), getResultTypes()))
    return failure();
  results.assign(parts.begin(), parts.end());
  return success();
}

//===----------------------------------------------------------------------===//
// BatchSizeOp
//===----------------------------------------------------------------------===//

OpFoldResult BatchSizeOp::fold(FoldAdaptor) {
  Builder builder(getContext());
  if (auto pack = getJagged().getDefiningOp<PackOp>()) {
    for (Value offsets : pack.getOffsets())
      if (std::optional<int64_t> entries = staticSize(offsets))
        return builder.getIndexAttr(*entries - 1);
    return {};
  }
  auto keyed = getJagged().getDefiningOp<FromKeyedOp>();
  if (!keyed)
    return {};
  std::optional<int64_t> entries = staticSize(keyed.getOffsets());
  auto features =
      static_cast<int64_t>(getJagged().getType().getFeatures().size());
  if (!entries || (*entries - 1) % features != 0)
    return {};
  return builder.getIndexAttr((*entries - 1) / features);
}

namespace {
/// The batch of packed ids is the number of offsets of any feature, less one.
struct BatchSizeOfPack : OpRewritePattern<BatchSizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchSizeOp op,
                                PatternRewriter &rewriter) const override {
    auto pack = op.getJagged().getDefiningOp<PackOp>();
    if (!pack)
      return rewriter.notifyMatchFailure(op, "its ids are not packed here");
    Value entries = tensor::DimOp::create(rewriter, op.getLoc(),
                                          pack.getOffsets().front(), 0);
    Value one = arith::ConstantIndexOp::create(rewriter, op.getLoc(), 1);
    rewriter.replaceOpWithNewOp<arith::SubIOp>(op, entries, one);
    return success();
  }
};
} // namespace

void BatchSizeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<BatchSizeOfPack>(context);
}

//===----------------------------------------------------------------------===//
// NumIdsOp
//===----------------------------------------------------------------------===//

/// The tensors whose sizes add up to the number of ids; none where no op of
/// the block packs them.
static SmallVector<Value> countedTensors(NumIdsOp op) {
  if (auto pack = op.getJagged().getDefiningOp<PackOp>()) {
    if (!op.getFeatureAttr())
      return llvm::to_vector(pack.getIds());
    int64_t index = *pack.getResult().getType().indexOf(op.getFeatureAttr());
    return {pack.getIds()[index]};
  }
  auto keyed = op.getJagged().getDefiningOp<FromKeyedOp>();
  if (!keyed || (op.getFeatureAttr() &&
                 keyed.getResult().getType().getFeatures().size() > 1))
    return {};
  return {keyed.getIds()};
}

OpFoldResult NumIdsOp::fold(FoldAdaptor) {
  SmallVector<Value> tensors = countedTensors(*this);
  if (tensors.empty())
    return {};
  int64_t total = 0;
  for (Value tensor : tensors) {
    std::optional<int64_t> size = staticSize(tensor);
    if (!size)
      return {};
    total += *size;
  }
  return Builder(getContext()).getIndexAttr(total);
}

namespace {
/// The ids of the only feature are all ids.
struct NumIdsOfOnlyFeature : OpRewritePattern<NumIdsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(NumIdsOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getFeatureAttr() ||
        op.getJagged().getType().getFeatures().size() > 1)
      return rewriter.notifyMatchFailure(op, "it names one of several");
    rewriter.modifyOpInPlace(op, [&] { op.removeFeatureAttr(); });
    return success();
  }
};

/// One tensor has all of the ids that are counted.
struct NumIdsOfTensor : OpRewritePattern<NumIdsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(NumIdsOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<Value> tensors = countedTensors(op);
    if (tensors.size() != 1)
      return rewriter.notifyMatchFailure(op, "no single tensor has its ids");
    rewriter.replaceOpWithNewOp<tensor::DimOp>(op, tensors.front(), 0);
    return success();
  }
};
} // namespace

void NumIdsOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<NumIdsOfOnlyFeature, NumIdsOfTensor>(context);
}
