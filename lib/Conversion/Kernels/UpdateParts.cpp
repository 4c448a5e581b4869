//===- UpdateParts.cpp - Helpers of update kernels ------------------------===//
//
// The gradient of a row is the sum over its segment, in the segment's order.
//
//===----------------------------------------------------------------------===//

#include "UpdateParts.h"
#include "Optimizers/CounterRules.h"
#include "Optimizers/RandomRounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace neuroshard {

Row addGradients(const UpdateBody &body, const ColumnBlock &block, Span span,
                 Row sum) {
  UpdateInputs &inputs = body.inputs;
  int64_t inFlight = body.rows.getShape().inFlight;
  auto emitTerms = [&](ArrayRef<Value> positions) {
    SmallVector<Term> terms;
    for (Value position : positions) {
      body.rows.prefetch(
          {body.gradients, inputs.getGradientOffsetAhead(position)}, block,
          /*forWrite=*/false);
      Value offset = inputs.getGradientOffset(position);
      Value factor = body.spec.weighted ? inputs.getFactor(position) : Value();
      terms.push_back({{body.gradients, offset}, factor});
    }
    return terms;
  };
  return emitSum(body, block, span, sum, inFlight, emitTerms);
}

/// Few runs have sums of chunks, so registers matter more than latency.
static constexpr int64_t kSumsInFlight = 2;

static Row sumParts(const UpdateBody &body, const ColumnBlock &block,
                    const SplitRun &run) {
  auto emitSums = [&](ArrayRef<Value> numbers) {
    SmallVector<Term> terms;
    for (Value number : numbers) {
      Value offset = arith::MulIOp::create(body.b, number, run.stride);
      terms.push_back({{run.partials, offset}, {}});
    }
    return terms;
  };
  // In this order, which takes fewer registers.
  Row sum = addGradients(body, block, run.rest, body.rows.zeros(block));
  return emitSum(body, block, run.sums, sum, kSumsInFlight, emitSums);
}

static Row sumRun(const UpdateBody &body, const ColumnBlock &block, Span run) {
  if (std::optional<SplitRun> split = body.inputs.splitRun(run))
    return sumParts(body, block, *split);
  return addGradients(body, block, run, body.rows.zeros(block));
}

Row sumGradients(const UpdateBody &body, const ColumnBlock &block, Span run) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  Value offset = body.inputs.getFirstGradientOffset();
  if (!offset)
    return sumRun(body, block, run);
  Value count = arith::SubIOp::create(b, run.limit, run.first);
  Value isOne =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, count, rows.index(1));
  Row zeros = rows.zeros(block);
  auto finish = [&](Row sum, ArrayRef<Value> ahead) {
    llvm::append_range(sum, ahead);
    scf::YieldOp::create(b, sum);
  };
  auto emitOne = [&](OpBuilder &, Location) {
    SmallVector<Value> ahead = body.inputs.emitReadsAhead();
    Row row = rows.read({body.gradients, offset}, block);
    if (body.spec.weighted)
      row = rows.scale(body.inputs.getFactor(run.first), row);
    finish(rows.add(zeros, row), ahead);
  };
  // The sum of several needs all registers, so the reads come after it.
  auto emitSeveral = [&](OpBuilder &, Location) {
    Row sum = sumRun(body, block, run);
    finish(sum, body.inputs.emitReadsAhead());
  };
  auto branch = scf::IfOp::create(b, isOne, emitOne, emitSeveral);
  body.inputs.setReadAhead(branch.getResults().drop_front(zeros.size()));
  return Row(branch.getResults().take_front(zeros.size()));
}

Row readGradient(const UpdateBody &body, const ColumnBlock &block, Span run) {
  return clipGradient(body.rows, body.spec.optimizer,
                      sumGradients(body, block, run));
}

ArrayRef<Value> elementStates(const UpdateBody &body) {
  int count = optimizerStates(body.spec.optimizer).perElement;
  return ArrayRef<Value>(body.states).take_front(static_cast<size_t>(count));
}

ArrayRef<Value> rowStates(const UpdateBody &body) {
  return ArrayRef<Value>(body.states).drop_front(elementStates(body).size());
}

void prefetchRowState(const UpdateBody &body, Value ahead) {
  if (!ahead)
    return;
  for (Value state : rowStates(body))
    memref::PrefetchOp::create(body.b, state, ahead, /*isWrite=*/true,
                               /*localityHint=*/3, /*isDataCache=*/true);
}

void prefetchRow(const UpdateBody &body, Value ahead,
                 const ColumnBlock &block) {
  body.rows.prefetch({body.weights, ahead}, block, /*forWrite=*/true);
  for (Value state : elementStates(body))
    body.rows.prefetch({state, ahead}, block, /*forWrite=*/true);
}

void writeStates(const UpdateBody &body, ArrayRef<Row> states, Value row,
                 const ColumnBlock &block) {
  for (auto [state, value] : llvm::zip_equal(elementStates(body), states))
    body.rows.write(value, {state, row}, block);
}

void writeWeights(const UpdateBody &body, Row weights, Value row,
                  const ColumnBlock &block, const Row &gradient) {
  if (body.spec.optimizer.stochasticRounding)
    weights =
        roundAtRandom(body.b, body.spec.element, weights, gradient, body.seed);
  body.rows.write(weights, {body.weights, row}, block);
}

static int64_t getTableDim(const KernelSpec &spec) {
  return spec.tableDim != 0 ? spec.tableDim : spec.dim;
}

RowBefore::RowBefore(const UpdateBody &body, Value row,
                     const ColumnBlock &block, ArrayRef<Value> states)
    : body(body), row(row), block(block) {
  int64_t room = body.rows.getShape().ahead;
  int64_t columns = block.slices.back().offset + block.slices.back().width;
  arrays.push_back(body.weights);
  llvm::append_range(arrays, states);
  for (Value array : arrays) {
    room -= columns;
    if (room >= 0)
      stored.push_back(body.rows.readStored({array, row}, block));
  }
}

RowState RowBefore::get() {
  for (Value array : llvm::drop_begin(arrays, stored.size()))
    stored.push_back(body.rows.readStored({array, row}, block));
  RowState state{body.rows.extend(stored.front()), {}};
  for (const Row &values : llvm::drop_begin(stored))
    state.states.push_back(body.rows.extend(values));
  return state;
}

Value readRowState(const UpdateBody &body, Value row) {
  return memref::LoadOp::create(body.b, body.states.back(), row);
}

SmallVector<Value> readRowStates(const UpdateBody &body, Value row) {
  SmallVector<Value> values;
  for (Value state : rowStates(body))
    values.push_back(memref::LoadOp::create(body.b, state, row));
  return values;
}

Value updateRowState(const UpdateBody &body, Value row, Value before,
                     Value norm) {
  Value after = stepRowState(body.b, body.rows, body.spec.optimizer,
                             getTableDim(body.spec), before, norm);
  body.rows.writeScalar(after, body.states.back(), row);
  return after;
}

RowFactors stepRowStates(const UpdateBody &body, Value row,
                         ArrayRef<Value> before, Value norm) {
  const Optimizer &optimizer = body.spec.optimizer;
  if (!propertiesOf(optimizer.kind).hasCounters) {
    Value after = updateRowState(body, row, before.front(), norm);
    return {rowwiseFactor(body.b, body.rows, optimizer, after, body.stepSize),
            body.kept};
  }
  CountedStep counted =
      stepCounted(body.b, body.rows, optimizer, getTableDim(body.spec), before,
                  norm, body.stepSize, body.step);
  for (auto [value, state] : llvm::zip_equal(counted.states, rowStates(body)))
    body.rows.writeScalar(value, state, row);
  return {counted.factor, counted.kept};
}

} // namespace neuroshard
