//===- JaggedOps.cpp - Ops on jagged values become loops ------------------===//
//
// pack and unpack copy ids; the other ops need no copies.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Jagged/Jagged.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace neuroshard {

/// Copies from[begin ... begin + count) to to[at ...).
static void copyElements(LoopBuilder &b, Value from, Value begin, Value count,
                         Value to, Value at) {
  b.loop(b.index(0), count, [&](Value i) {
    b.store(b.load(from, b.add(begin, i)), to, b.add(at, i));
  });
}

namespace {
struct LowerPack : OpConversionPattern<ir::PackOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::PackOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoopBuilder b(op.getLoc(), rewriter);
    ValueRange offsets = adaptor.getOffsets();
    Value batch = b.sub(b.size(offsets[0]), b.index(1));
    SmallVector<Value> counts, numIds, numWeights;
    for (auto [ids, featureOffsets] :
         llvm::zip_equal(adaptor.getIds(), offsets)) {
      counts.push_back(b.load(featureOffsets, batch));
      // Never more than there are: the last offset then is not the number of
      // ids, which the runtime refuses.
      numIds.push_back(least(b, counts.back(), b.size(ids)));
    }
    SmallVector<Value> results = {
        concatenate(b, adaptor.getIds(), numIds),
        concatenateOffsets(b, offsets, counts, batch)};
    for (auto [ids, weights, used] :
         llvm::zip(adaptor.getIds(), adaptor.getWeights(), numIds))
      numWeights.push_back(countOfWeights(b, ids, weights, used));
    if (!numWeights.empty())
      results.push_back(concatenate(b, adaptor.getWeights(), numWeights));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  static Value least(LoopBuilder &b, Value a, Value other) {
    return arith::MinSIOp::create(b, a, other);
  }

  /// As many as ids are used, or all weights where there is not one for each
  /// id: the runtime refuses another number of weights than of ids.
  static Value countOfWeights(LoopBuilder &b, Value ids, Value weights,
                              Value used) {
    Value given = b.size(weights);
    Value fits =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, given, b.size(ids));
    return arith::SelectOp::create(b, fits, used, given);
  }

  static Value concatenate(LoopBuilder &b, ValueRange parts,
                           ArrayRef<Value> counts) {
    Value total = b.index(0);
    for (Value count : counts)
      total = b.add(total, count);
    Type element = cast<ShapedType>(parts[0].getType()).getElementType();
    Value buffer = b.allocate(element, total);
    Value zero = b.index(0), at = zero;
    for (auto [part, count] : llvm::zip_equal(parts, counts)) {
      copyElements(b, part, zero, count, buffer, at);
      at = b.add(at, count);
    }
    return b.toTensor(buffer,
                      RankedTensorType::get({ShapedType::kDynamic}, element));
  }

  static Value concatenateOffsets(LoopBuilder &b, ValueRange parts,
                                  ArrayRef<Value> counts, Value batch) {
    Type element = b.getI64Type();
    Value zero = b.index(0), one = b.index(1);
    Value numBags = b.mul(b.index(parts.size()), batch);
    Value buffer = b.allocate(element, b.add(numBags, one));
    b.store(zero, buffer, zero);
    Value before = zero, at = one;
    for (auto [part, count] : llvm::zip_equal(parts, counts)) {
      b.loop(zero, batch, [&, part = part](Value bag) {
        Value end = b.add(before, b.load(part, b.add(bag, one)));
        b.store(end, buffer, b.add(at, bag));
      });
      before = b.add(before, count);
      at = b.add(at, batch);
    }
    return b.toTensor(buffer,
                      RankedTensorType::get({ShapedType::kDynamic}, element));
  }
};

struct LowerFromKeyed : OpConversionPattern<ir::FromKeyedOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::FromKeyedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (failed(
            getTypeConverter()->convertType(op.getResult().getType(), types)))
      return rewriter.notifyMatchFailure(op, "its type has no conversion");
    LoopBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> results;
    for (auto [value, type] : llvm::zip(adaptor.getOperands(), types))
      results.push_back(copyIfOther(b, value, cast<RankedTensorType>(type)));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  /// `value` as a tensor of `type`: i32 offsets become i64.
  static Value copyIfOther(LoopBuilder &b, Value value, RankedTensorType type) {
    if (value.getType() == type)
      return value;
    Value count = b.size(value), zero = b.index(0);
    Value buffer = b.allocate(type.getElementType(), count);
    copyElements(b, value, zero, count, buffer, zero);
    return b.toTensor(buffer, type);
  }
};

struct LowerUnpack : OpConversionPattern<ir::UnpackOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::UnpackOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    JaggedTensors jagged(op.getJagged().getType(), adaptor.getJagged());
    int64_t feature = *jagged.type.indexOf(op.getFeatureAttr());
    LoopBuilder b(op.getLoc(), rewriter);
    Value batch = jagged.batchSize(b), zero = b.index(0);
    Value first = jagged.firstId(b, feature, batch, zero);
    Value count = b.sub(jagged.firstId(b, feature + 1, batch, zero), first);

    auto slice = [&](Value from, Value result) {
      auto type = cast<RankedTensorType>(result.getType());
      Value buffer = b.allocate(type.getElementType(), count);
      copyElements(b, from, first, count, buffer, zero);
      return b.toTensor(buffer, type);
    };
    auto offsetsType = cast<RankedTensorType>(op.getOffsets().getType());
    Value numOffsets = b.add(batch, b.index(1));
    Value offsets = b.allocate(offsetsType.getElementType(), numOffsets);
    b.loop(zero, numOffsets, [&](Value bag) {
      Value offset = jagged.firstId(b, feature, batch, bag);
      b.store(b.sub(offset, first), offsets, bag);
    });
    SmallVector<Value> results = {slice(jagged.ids, op.getIds()),
                                  b.toTensor(offsets, offsetsType)};
    if (op.getWeights())
      results.push_back(slice(jagged.weights, op.getWeights()));
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct LowerBatchSize : OpConversionPattern<ir::BatchSizeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::BatchSizeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    JaggedTensors jagged(op.getJagged().getType(), adaptor.getJagged());
    LoopBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, jagged.batchSize(b));
    return success();
  }
};

struct LowerNumIds : OpConversionPattern<ir::NumIdsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::NumIdsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    JaggedTensors jagged(op.getJagged().getType(), adaptor.getJagged());
    LoopBuilder b(op.getLoc(), rewriter);
    StringAttr feature = op.getFeatureAttr();
    rewriter.replaceOp(op, feature
                               ? jagged.numIds(b, *jagged.type.indexOf(feature))
                               : b.size(jagged.ids));
    return success();
  }
};

/// suspend, save: the values themselves replace the bundle.
template <typename OpT> struct LowerBundle : OpConversionPattern<OpT> {
  using OpConversionPattern<OpT>::OpConversionPattern;

  LogicalResult matchAndRewrite(
      OpT op,
      typename OpT::template GenericAdaptor<ArrayRef<ValueRange>> adaptor,
      ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> values;
    for (ValueRange value : adaptor.getValues())
      llvm::append_range(values, value);
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

/// resume, restore: the parts of the bundle replace the values.
template <typename OpT> struct LowerUnbundle : OpConversionPattern<OpT> {
  using OpConversionPattern<OpT>::OpConversionPattern;

  LogicalResult matchAndRewrite(
      OpT op,
      typename OpT::template GenericAdaptor<ArrayRef<ValueRange>> adaptor,
      ConversionPatternRewriter &rewriter) const override {
    ValueRange parts = adaptor.getBundle();
    SmallVector<ValueRange> results;
    for (Type type : op.getValues().getTypes()) {
      SmallVector<Type> types;
      if (failed(this->getTypeConverter()->convertType(type, types)))
        return rewriter.notifyMatchFailure(op,
                                           "a type of it has no conversion");
      results.push_back(parts.take_front(types.size()));
      parts = parts.drop_front(types.size());
    }
    rewriter.replaceOpWithMultiple(op, results);
    return success();
  }
};
} // namespace

void populateJaggedPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  patterns.add<LowerPack, LowerFromKeyed, LowerUnpack, LowerBatchSize,
               LowerNumIds, LowerBundle<ir::SuspendOp>, LowerBundle<ir::SaveOp>,
               LowerUnbundle<ir::ResumeOp>, LowerUnbundle<ir::RestoreOp>>(
      converter, patterns.getContext());
}

} // namespace neuroshard
