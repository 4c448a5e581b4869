//===- UpdateKernels.cpp - Optimizer steps on unique rows -----------------===//
//
// The gradient of a row is the sum over its segment, in the segment's order.
// A row of more than one block has the gradient summed again in the second
// pass of a row-wise optimizer: the same bits, and no scratch memory.
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"
#include "OptimizerRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace neuroshard {

namespace {
/// Sums the gradients of a segment.
class SegmentSum {
public:
  /// `arguments`: segments, gradient offsets, sample weights, gradients.
  SegmentSum(const KernelBody &body, ValueRange arguments)
      : body(body), segments(arguments[0]), offsets(arguments[1]),
        sampleWeights(arguments[2]), gradients(arguments[3]),
        one(body.rows.index(1)) {
    Value limit = loadIndex(body.b, segments, body.end);
    last = arith::SubIOp::create(body.b, limit, one);
  }

  /// Loads the bounds of item `item`.
  void enter(Value item) {
    first = loadIndex(body.b, segments, item);
    limit =
        loadIndex(body.b, segments, arith::AddIOp::create(body.b, item, one));
  }

  /// The sum of the segment entered last, for one block of columns.
  Row emit(const ColumnBlock &block) const {
    ImplicitLocOpBuilder &b = body.b;
    RowBuilder &rows = body.rows;
    auto sum = scf::ForOp::create(b, first, limit, one, rows.zeros(block));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(sum.getBody());
    Value position = sum.getInductionVar();
    rows.prefetch({gradients, loadAhead(b, offsets, position, last)}, block,
                  /*forWrite=*/false);
    Row row = rows.read({gradients, loadIndex(b, offsets, position)}, block);
    if (body.spec.weighted)
      row = rows.scale(memref::LoadOp::create(b, sampleWeights, position), row);
    scf::YieldOp::create(b, rows.add(Row(sum.getRegionIterArgs()), row));
    return Row(sum.getResults());
  }

private:
  const KernelBody &body;
  Value segments, offsets, sampleWeights, gradients, one;
  Value last, first, limit;
};
} // namespace

static int64_t getTableDim(const KernelSpec &spec) {
  return spec.tableDim != 0 ? spec.tableDim : spec.dim;
}

static void emitElementwiseUpdate(const KernelBody &body) {
  RowBuilder &rows = body.rows;
  const OptimizerSpec &optimizer = body.spec.optimizer;
  Value weights = body.arguments[0], rowNumbers = body.arguments[3];
  ValueRange states =
      body.arguments.slice(1, getNumElementStates(optimizer.kind));
  Value stepSize = body.arguments[8];
  SegmentSum gradientSum(body, body.arguments.slice(4, 4));
  Value last = arith::SubIOp::create(body.b, body.end, rows.index(1));

  forEachItem(body, [&](Value item) {
    Value row = loadIndex(body.b, rowNumbers, item);
    Value ahead = loadAhead(body.b, rowNumbers, item, last);
    gradientSum.enter(item);
    rows.forEachBlock([&](const ColumnBlock &block) {
      rows.prefetch({weights, ahead}, block, /*forWrite=*/true);
      for (Value state : states)
        rows.prefetch({state, ahead}, block, /*forWrite=*/true);

      Row gradient = gradientSum.emit(block);
      RowState before{rows.read({weights, row}, block), {}};
      for (Value state : states)
        before.states.push_back(rows.read({state, row}, block));
      gradient = addWeightDecay(rows, optimizer, gradient, before.weights);
      RowState after =
          applyElementwise(rows, optimizer, before, gradient, stepSize);
      for (auto [state, value] : llvm::zip_equal(states, after.states))
        rows.write(value, {state, row}, block);
      rows.write(after.weights, {weights, row}, block);
    });
  });
}

static void emitRowwiseUpdate(const KernelBody &body) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  const OptimizerSpec &optimizer = body.spec.optimizer;
  Value weights = body.arguments[0], state = body.arguments[1];
  Value rowNumbers = body.arguments[3], stepSize = body.arguments[8];
  SegmentSum gradientSum(body, body.arguments.slice(4, 4));
  Value last = arith::SubIOp::create(b, body.end, rows.index(1));

  forEachItem(body, [&](Value item) {
    Value row = loadIndex(b, rowNumbers, item);
    Value ahead = loadAhead(b, rowNumbers, item, last);
    memref::PrefetchOp::create(b, state, ahead, /*isWrite=*/true,
                               /*localityHint=*/3, /*isDataCache=*/true);
    gradientSum.enter(item);
    Row weightRow, gradient;
    auto loadBlock = [&](const ColumnBlock &block) {
      // The weights come second: in registers only after the sum.
      Row sum = gradientSum.emit(block);
      weightRow = rows.read({weights, row}, block);
      gradient = addWeightDecay(rows, optimizer, sum, weightRow);
    };
    Value norm = rows.sumColumns([&](const ColumnBlock &block) {
      rows.prefetch({weights, ahead}, block, /*forWrite=*/true);
      loadBlock(block);
      return rows.multiply(gradient, gradient);
    });
    Value before = memref::LoadOp::create(b, state, row);
    Value accumulator =
        accumulateRowwise(b, rows, getTableDim(body.spec), before, norm);
    rows.writeScalar(accumulator, state, row);
    Value factor = rowwiseFactor(b, rows, optimizer, accumulator, stepSize);
    rows.forEachBlock([&](const ColumnBlock &block) {
      if (!rows.isOneBlock())
        loadBlock(block);
      rows.write(rows.subtract(weightRow, rows.scale(factor, gradient)),
                 {weights, row}, block);
    });
  });
}

void emitUpdate(const KernelBody &body) {
  if (body.spec.optimizer.kind == OptimizerKind::RowwiseAdagrad)
    return emitRowwiseUpdate(body);
  emitElementwiseUpdate(body);
}

void emitReduce(const KernelBody &body) {
  RowBuilder &rows = body.rows;
  Value reduced = body.arguments[4], norms = body.arguments[5];
  SegmentSum gradientSum(body, body.arguments.take_front(4));

  forEachItem(body, [&](Value item) {
    gradientSum.enter(item);
    Value norm = rows.sumColumns([&](const ColumnBlock &block) {
      Row gradient = gradientSum.emit(block);
      rows.write(gradient, {reduced, item}, block);
      return rows.multiply(gradient, gradient);
    });
    rows.writeScalar(norm, norms, item);
  });
}

void emitApply(const KernelBody &body) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  Value weights = body.arguments[0], state = body.arguments[1];
  Value rowNumbers = body.arguments[2], reduced = body.arguments[3];
  Value norms = body.arguments[4], stepSize = body.arguments[5];
  Value last = arith::SubIOp::create(b, body.end, rows.index(1));

  forEachItem(body, [&](Value item) {
    Value row = loadIndex(b, rowNumbers, item);
    Value ahead = loadAhead(b, rowNumbers, item, last);
    memref::PrefetchOp::create(b, state, ahead, /*isWrite=*/true,
                               /*localityHint=*/3, /*isDataCache=*/true);
    Value before = memref::LoadOp::create(b, state, row);
    Value norm = memref::LoadOp::create(b, norms, item);
    Value accumulator =
        accumulateRowwise(b, rows, getTableDim(body.spec), before, norm);
    rows.writeScalar(accumulator, state, row);
    Value factor =
        rowwiseFactor(b, rows, body.spec.optimizer, accumulator, stepSize);
    rows.forEachBlock([&](const ColumnBlock &block) {
      rows.prefetch({weights, ahead}, block, /*forWrite=*/true);
      Row gradient = rows.read({reduced, item}, block);
      Row weightRow = rows.read({weights, row}, block);
      rows.write(rows.subtract(weightRow, rows.scale(factor, gradient)),
                 {weights, row}, block);
    });
  });
}

} // namespace neuroshard
