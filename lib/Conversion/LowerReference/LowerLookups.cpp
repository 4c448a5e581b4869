//===- LowerLookups.cpp - Lookups as plain loops --------------------------===//

#include "LowerOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace neuroshard {

Value loadF32(LoopBuilder &b, Value from, ValueRange indices) {
  Value element = b.load(from, indices);
  if (element.getType().isF32())
    return element;
  return arith::ExtFOp::create(b, b.getF32Type(), element);
}

void storeRounded(LoopBuilder &b, Value value, Value memref,
                  ValueRange indices) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  if (!element.isF32())
    value = arith::TruncFOp::create(b, element, value);
  b.store(value, memref, indices);
}

LookupIds::LookupIds(LoopBuilder &b, ir::LookupAttr lookup,
                     const JaggedTensors &jagged)
    : lookup(lookup), jagged(jagged),
      feature(*jagged.type.indexOf(lookup.getFeature())) {
  Value zero = b.index(0);
  batch = jagged.batchSize(b);
  firstId = jagged.firstId(b, feature, batch, zero);
  endId = jagged.firstId(b, feature + 1, batch, zero);
}

Value LookupIds::begin(LoopBuilder &b, Value bag) const {
  return jagged.firstId(b, feature, batch, bag);
}

Value LookupIds::end(LoopBuilder &b, Value bag) const {
  return jagged.firstId(b, feature, batch, b.add(bag, b.index(1)));
}

Value LookupIds::counts(LoopBuilder &b, Value id) const {
  if (!lookup.getPaddingIdx())
    return arith::ConstantOp::create(b, b.getBoolAttr(true));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, id,
                               b.index(*lookup.getPaddingIdx()));
}

Value LookupIds::bagCount(LoopBuilder &b, Value bag) const {
  Value zero = b.f32(0), one = b.f32(1);
  return b.fold(begin(b, bag), end(b, bag), zero, [&](Value position, Value n) {
    Value isIn = counts(b, b.load(jagged.ids, position));
    return b.add(n, arith::SelectOp::create(b, isIn, one, zero));
  });
}

void LookupIds::forEachId(
    LoopBuilder &b, llvm::function_ref<void(Value, Value, Value)> body) const {
  b.loop(b.index(0), batch, [&](Value bag) {
    b.loop(begin(b, bag), end(b, bag), [&](Value position) {
      Value id = b.load(jagged.ids, position);
      b.when(counts(b, id), [&] { body(bag, position, id); });
    });
  });
}

namespace {
class LowerLookup : public OpConversionPattern<ir::LookupOp> {
public:
  LowerLookup(const TypeConverter &converter, MLIRContext *context,
              const TableInfos &tables)
      : OpConversionPattern(converter, context), tables(tables) {}

  LogicalResult
  matchAndRewrite(ir::LookupOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoopBuilder b(op.getLoc(), rewriter);
    LookupIds ids(b, op.getLookup(),
                  JaggedTensors(op.getIds().getType(), adaptor.getIds()));
    StringAttr name = op.getTableAttr().getAttr();
    Value weights = getTableMemory(op, name).weights;
    auto type = cast<RankedTensorType>(op.getResult().getType());
    int64_t dim = tables.at(name).dim;
    Value result = op.getPooling() == Pooling::None
                       ? copyRows(b, ids, weights, type, dim)
                       : sumRows(b, ids, weights, type, dim);
    rewriter.replaceOp(op, b.toTensor(result, type));
    return success();
  }

private:
  /// A buffer for so many rows, and for all rows of a static type: the sharded
  /// program says where they are not as many.
  static Value allocateRows(LoopBuilder &b, RankedTensorType type, Value rows,
                            int64_t dim) {
    if (!type.isDynamicDim(0))
      rows = arith::MaxSIOp::create(b, rows, b.index(type.getDimSize(0)));
    return b.allocate(type.getElementType(), rows, dim);
  }

  static Value copyRows(LoopBuilder &b, const LookupIds &ids, Value weights,
                        RankedTensorType type, int64_t dim) {
    Value count = b.sub(ids.endId, ids.firstId), zero = b.index(0);
    Value result = allocateRows(b, type, count, dim);
    b.loop(zero, count, [&](Value i) {
      Value id = b.load(ids.jagged.ids, b.add(ids.firstId, i));
      b.loop(zero, b.index(dim), [&](Value column) {
        storeRounded(b, loadF32(b, weights, {id, column}), result, {i, column});
      });
    });
    return result;
  }

  static Value sumRows(LoopBuilder &b, const LookupIds &ids, Value weights,
                       RankedTensorType type, int64_t dim) {
    Value zero = b.index(0), numColumns = b.index(dim);
    Value sums = b.allocate(b.getF32Type(), ids.batch, dim);
    b.loop(zero, ids.batch, [&](Value bag) {
      b.loop(zero, numColumns,
             [&](Value column) { b.store(b.f32(0), sums, {bag, column}); });
    });
    ids.forEachId(b, [&](Value bag, Value position, Value id) {
      b.loop(zero, numColumns, [&](Value column) {
        Value term = loadF32(b, weights, {id, column});
        if (ids.lookup.getWeighted())
          term = b.mul(b.load(ids.jagged.weights, position), term);
        Value sum = b.load(sums, {bag, column});
        b.store(b.add(sum, term), sums, {bag, column});
      });
    });
    return finish(b, ids, sums, type, dim);
  }

  /// Divides a mean and rounds.
  static Value finish(LoopBuilder &b, const LookupIds &ids, Value sums,
                      RankedTensorType type, int64_t dim) {
    bool isMean = ids.lookup.getPooling() == Pooling::Mean;
    Value zero = b.index(0);
    Value result = allocateRows(b, type, ids.batch, dim);
    b.loop(zero, ids.batch, [&](Value bag) {
      // An empty bag is zero: 0 / 1.
      Value count =
          isMean ? arith::MaximumFOp::create(b, ids.bagCount(b, bag), b.f32(1))
                       .getResult()
                 : Value();
      b.loop(zero, b.index(dim), [&](Value column) {
        Value sum = b.load(sums, {bag, column});
        storeRounded(b, isMean ? b.div(sum, count) : sum, result,
                     {bag, column});
      });
    });
    return result;
  }

  const TableInfos &tables;
};
} // namespace

void populateLookupPatterns(const TypeConverter &converter,
                            const TableInfos &tables,
                            RewritePatternSet &patterns) {
  patterns.add<LowerLookup>(converter, patterns.getContext(), tables);
}

} // namespace neuroshard
