//===- TrustKernels.cpp - Updates with trust ratios -----------------------===//
//
// A first pass over the row gives the sums over its columns and steps the
// states that need none; a second one steps the weights. Between them the
// owners of a row's columns may add up their sums: then the first pass keeps
// the direction of the step, else a row of more than one block has it computed
// again, which gives the same bits.
//
//===----------------------------------------------------------------------===//

#include "TrustKernels.h"
#include "Optimizers/TrustRules.h"
#include "UpdateParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace neuroshard {

static MomentFactors momentFactors(const UpdateBody &body) {
  return {body.first, body.second};
}

namespace {
/// What the second pass takes of a block.
struct TrustBlock {
  Row weights, direction;
};
} // namespace

/// The first pass over a block of a row: returns the products to sum.
static SmallVector<Row> reduceBlock(const UpdateBody &body,
                                    const ColumnBlock &block, Value row,
                                    Span run, TrustBlock &result) {
  RowBuilder &rows = body.rows;
  const Optimizer &optimizer = body.spec.optimizer;
  ArrayRef<Value> states;
  if (stepsBeforeSums(optimizer))
    states = elementStates(body);
  RowBefore reads(body, row, block, states);
  Row gradient = readGradient(body, block, run);
  RowState before = reads.get();
  SmallVector<Row, 2> moments;
  if (stepsBeforeSums(optimizer)) {
    moments = stepMoments(rows, optimizer, before.states, gradient);
    writeStates(body, moments, row, block);
  }
  result.weights = before.weights;
  result.direction = trustDirection(rows, optimizer, before.weights, moments,
                                    gradient, momentFactors(body));
  return trustProducts(rows, optimizer, before.weights, gradient,
                       result.direction);
}

/// The block after the first pass, with the same bits.
static TrustBlock readAgain(const UpdateBody &body, const ColumnBlock &block,
                            Value row, Span run) {
  const Optimizer &optimizer = body.spec.optimizer;
  Row weights = body.rows.read({body.weights, row}, block);
  SmallVector<Row, 2> moments;
  Row gradient;
  if (stepsBeforeSums(optimizer))
    for (Value state : elementStates(body))
      moments.push_back(body.rows.read({state, row}, block));
  else
    gradient = readGradient(body, block, run);
  return {weights, trustDirection(body.rows, optimizer, weights, moments,
                                  gradient, momentFactors(body))};
}

/// The step of the state per row, if there is one, and what the sums give.
static TrustStep stepRow(const UpdateBody &body, Value row,
                         ArrayRef<Value> sums) {
  const Optimizer &optimizer = body.spec.optimizer;
  Value rowState;
  if (isRowWise(optimizer.kind))
    rowState = updateRowState(body, row, readRowState(body, row), sums[0]);
  return trustStep(body.b, body.rows, optimizer, sums, rowState, body.stepSize,
                   momentFactors(body));
}

static void applyBlock(const UpdateBody &body, const ColumnBlock &block,
                       Value row, const TrustBlock &values,
                       const TrustStep &step) {
  RowBuilder &rows = body.rows;
  const Optimizer &optimizer = body.spec.optimizer;
  RowState before{values.weights, {}};
  bool stepsNow = !stepsBeforeSums(optimizer);
  if (stepsNow)
    for (Value state : elementStates(body))
      before.states.push_back(rows.read({state, row}, block));
  Row direction =
      finalDirection(rows, optimizer, values.weights, values.direction, step);
  RowState after = applyTrust(rows, optimizer, before, direction, step);
  if (stepsNow)
    writeStates(body, after.states, row, block);
  writeWeights(body, after.weights, row, block, direction);
}

/// Prefetches the state per row, if there is one.
static void prefetchState(const UpdateBody &body, Value ahead) {
  if (isRowWise(body.spec.optimizer.kind))
    prefetchRowState(body, ahead);
}

void emitTrustUpdate(const UpdateBody &body) {
  RowBuilder &rows = body.rows;
  body.inputs.forEachItem([&](Value item) {
    Value row = body.inputs.getRow(item);
    Value ahead = body.inputs.getRowAhead(item);
    prefetchState(body, ahead);
    Span run = body.inputs.getRun(item);
    TrustBlock values;
    SmallVector<Value> sums = rows.sumColumns(
        normsPerRow(body.spec.optimizer.kind), [&](const ColumnBlock &block) {
          prefetchRow(body, ahead, block);
          return reduceBlock(body, block, row, run, values);
        });
    TrustStep step = stepRow(body, row, sums);
    rows.forEachBlock([&](const ColumnBlock &block) {
      if (!rows.isOneBlock())
        values = readAgain(body, block, row, run);
      applyBlock(body, block, row, values, step);
    });
  });
}

/// Where the sums of an item begin.
static Value placeOfSums(const UpdateBody &body, Value item) {
  Value count = body.rows.index(normsPerRow(body.spec.optimizer.kind));
  return arith::MulIOp::create(body.b, item, count);
}

void emitTrustReduce(const UpdateBody &body) {
  RowBuilder &rows = body.rows;
  body.inputs.forEachItem([&](Value item) {
    Value row = body.inputs.getRow(item);
    Value ahead = body.inputs.getRowAhead(item);
    Span run = body.inputs.getRun(item);
    SmallVector<Value> sums = rows.sumColumns(
        normsPerRow(body.spec.optimizer.kind), [&](const ColumnBlock &block) {
          prefetchRow(body, ahead, block);
          TrustBlock values;
          SmallVector<Row> products =
              reduceBlock(body, block, row, run, values);
          rows.write(values.direction, {body.reduced, item}, block);
          return products;
        });
    Value first = placeOfSums(body, item);
    for (auto [number, sum] : llvm::enumerate(sums)) {
      Value offset = rows.index(static_cast<int64_t>(number));
      rows.writeScalar(sum, body.norms,
                       arith::AddIOp::create(body.b, first, offset));
    }
  });
}

void emitTrustApply(const UpdateBody &body) {
  RowBuilder &rows = body.rows;
  body.inputs.forEachItem([&](Value item) {
    Value row = body.inputs.getRow(item);
    Value ahead = body.inputs.getRowAhead(item);
    prefetchState(body, ahead);
    Value first = placeOfSums(body, item);
    SmallVector<Value> sums;
    for (int64_t i = 0; i < normsPerRow(body.spec.optimizer.kind); ++i) {
      Value place = arith::AddIOp::create(body.b, first, rows.index(i));
      sums.push_back(memref::LoadOp::create(body.b, body.norms, place));
    }
    TrustStep step = stepRow(body, row, sums);
    rows.forEachBlock([&](const ColumnBlock &block) {
      prefetchRow(body, ahead, block);
      TrustBlock values{rows.read({body.weights, row}, block),
                        rows.read({body.reduced, item}, block)};
      applyBlock(body, block, row, values, step);
    });
  });
}

} // namespace neuroshard
