//===- LowerUpdates.cpp - Updates and weight gradients as plain loops -----===//
//
// An update first sums the gradient of each row of the batch, in the order
// (lookup, sample, position), in a buffer with one row per distinct id; then
// the optimizer takes one step for each of them, and, where rows catch up, for
// each of the others by a gradient of 0.
//
//===----------------------------------------------------------------------===//

#include "LowerOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace neuroshard {

/// One column of an id's gradient, as f32.
static Value gradientOfId(LoopBuilder &b, const LookupIds &ids, Value gradients,
                          Value bag, Value position, Value column) {
  bool isUnpooled = ids.lookup.getPooling() == Pooling::None;
  Value row = isUnpooled ? b.sub(position, ids.firstId) : bag;
  return loadF32(b, gradients, {row, column});
}

namespace {
/// The summed gradients of the distinct ids of a batch.
class GradientSums {
public:
  GradientSums(LoopBuilder &b, const TableInfo &table,
               ArrayRef<LookupIds> lookups)
      : dim(table.dim), numRows(table.rows), zero(b.index(0)) {
    Value capacity = zero;
    for (const LookupIds &ids : lookups)
      capacity = b.add(capacity, b.sub(ids.endId, ids.firstId));
    rows = b.allocate(b.getIndexType(), capacity);
    sums = b.allocate(b.getF32Type(), capacity, dim);
    // 1 + the place of a row's sum; 0: it has none.
    places = b.allocate(b.getIndexType(), b.index(table.rows));
    b.loop(zero, b.index(table.rows),
           [&](Value row) { b.store(zero, places, row); });
    counter = b.allocate(b.getIndexType(), b.index(1));
    b.store(zero, counter, zero);
  }

  void add(LoopBuilder &b, const LookupIds &ids, Value gradients) {
    bool isMean = ids.lookup.getPooling() == Pooling::Mean;
    ids.forEachId(b, [&](Value bag, Value position, Value id) {
      Value place = placeOf(b, id);
      Value count = isMean ? ids.bagCount(b, bag) : Value();
      b.loop(zero, b.index(dim), [&](Value column) {
        Value term = gradientOfId(b, ids, gradients, bag, position, column);
        if (isMean)
          term = b.div(term, count);
        if (ids.lookup.getWeighted())
          term = b.mul(b.load(ids.jagged.weights, position), term);
        Value sum = b.load(sums, {place, column});
        b.store(b.add(sum, term), sums, {place, column});
      });
    });
  }

  void apply(LoopBuilder &b, const OptimizerStep &step) {
    b.loop(zero, b.load(counter, zero), [&](Value place) {
      step.apply(b, b.load(rows, place), sums, place);
    });
  }

  /// The step of the rows that have no sum.
  void applyToOthers(LoopBuilder &b, const OptimizerStep &step) {
    Value none = b.allocate(b.getF32Type(), b.index(1), dim);
    b.loop(zero, b.index(dim),
           [&](Value column) { b.store(b.f32(0), none, {zero, column}); });
    b.loop(zero, b.index(numRows), [&](Value row) {
      Value isOther = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                            b.load(places, row), zero);
      b.when(isOther, [&] { step.apply(b, row, none, zero); });
    });
  }

private:
  /// Place of the row's sum; a new sum of zero if it has none.
  Value placeOf(LoopBuilder &b, Value row) {
    Value isNew = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        b.load(places, row), zero);
    b.when(isNew, [&] {
      Value place = b.load(counter, zero), next = b.add(place, b.index(1));
      b.store(next, counter, zero);
      b.store(next, places, row);
      b.store(row, rows, place);
      b.loop(zero, b.index(dim),
             [&](Value column) { b.store(b.f32(0), sums, {place, column}); });
    });
    return b.sub(b.load(places, row), b.index(1));
  }

  int64_t dim, numRows;
  Value zero, rows, sums, places, counter;
};

class LowerUpdate : public OpConversionPattern<ir::UpdateOp> {
public:
  LowerUpdate(const TypeConverter &converter, MLIRContext *context,
              const TableInfos &tables)
      : OpConversionPattern(converter, context), tables(tables) {}

  LogicalResult
  matchAndRewrite(ir::UpdateOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoopBuilder b(op.getLoc(), rewriter);
    StringAttr name = op.getTableAttr().getAttr();
    const TableInfo &table = tables.at(name);
    TableMemory memory = getTableMemory(op, name);

    SmallVector<LookupIds> lookups;
    for (auto [lookup, ids, tensors] :
         llvm::zip_equal(op.getLookups().getAsRange<ir::LookupAttr>(),
                         op.getIds(), adaptor.getIds()))
      lookups.emplace_back(
          b, lookup,
          JaggedTensors(cast<ir::JaggedType>(ids.getType()), tensors));
    GradientSums sums(b, table, lookups);
    for (auto [ids, gradients] :
         llvm::zip_equal(lookups, adaptor.getGradients()))
      sums.add(b, ids, gradients.front());
    OptimizerStep step(b, table, memory, adaptor.getLearningRate().front(),
                       adaptor.getStep().front());
    sums.apply(b, step);
    if (table.optimizer && table.optimizer->getOptimizer().catchUp)
      sums.applyToOthers(b, step);
    rewriter.eraseOp(op);
    return success();
  }

private:
  const TableInfos &tables;
};

class LowerWeightsGradient : public OpConversionPattern<ir::WeightsGradientOp> {
public:
  LowerWeightsGradient(const TypeConverter &converter, MLIRContext *context,
                       const TableInfos &tables)
      : OpConversionPattern(converter, context), tables(tables) {}

  LogicalResult
  matchAndRewrite(ir::WeightsGradientOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoopBuilder b(op.getLoc(), rewriter);
    JaggedTensors jagged(op.getIds().getType(), adaptor.getIds());
    Value count = b.size(jagged.ids), zero = b.index(0);
    Value result = b.allocate(b.getF32Type(), count);
    b.loop(zero, count, [&](Value i) { b.store(b.f32(0), result, i); });
    for (auto [lookup, gradients] :
         llvm::zip_equal(op.getLookups().getAsRange<ir::LookupAttr>(),
                         adaptor.getGradients()))
      addDotProducts(b, LookupIds(b, lookup, jagged),
                     getTableMemory(op, lookup.getTable().getAttr()).weights,
                     gradients.front(), result);
    rewriter.replaceOp(op, b.toTensor(result, cast<RankedTensorType>(
                                                  op.getResult().getType())));
    return success();
  }

private:
  void addDotProducts(LoopBuilder &b, const LookupIds &ids, Value weights,
                      Value gradients, Value result) const {
    int64_t dim = tables.at(ids.lookup.getTable().getAttr()).dim;
    ids.forEachId(b, [&](Value bag, Value position, Value id) {
      Value product = b.fold(
          b.index(0), b.index(dim), b.f32(0), [&](Value column, Value sum) {
            Value weight = loadF32(b, weights, {id, column});
            Value gradient =
                gradientOfId(b, ids, gradients, bag, position, column);
            return b.add(sum, b.mul(weight, gradient));
          });
      b.store(b.add(b.load(result, position), product), result, position);
    });
  }

  const TableInfos &tables;
};
} // namespace

void populateUpdatePatterns(const TypeConverter &converter,
                            const TableInfos &tables,
                            RewritePatternSet &patterns) {
  patterns.add<LowerUpdate, LowerWeightsGradient>(
      converter, patterns.getContext(), tables);
}

} // namespace neuroshard
