//===- CatchUpKernels.cpp - Steps that rows have missed -------------------===//
//
// Steps are taken one by one, each rounded as it would have been in its time.
// So a row has the same bits whenever it catches up, on every copy and under
// every plan, and those of an optimizer that steps the whole table each time.
// A block stays in registers over all of its steps.
//
//===----------------------------------------------------------------------===//

#include "CatchUpKernels.h"
#include "Optimizers/RandomRounding.h"
#include "UpdateParts.h"

#include "neuroshard/Dialect/ElementTypes.h"
#include "neuroshard/Runtime/KernelABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace neuroshard {

namespace {
/// The optimizer step with a number, as the history has it.
struct PastStep {
  Value size, kept, seed;
};
} // namespace

static PastStep readStep(const UpdateBody &body, Value number) {
  ImplicitLocOpBuilder &b = body.b;
  Value first =
      arith::MulIOp::create(b, number, body.rows.index(NSRT_HISTORY_VALUES));
  auto load = [&](int64_t index) -> Value {
    return memref::LoadOp::create(
        b, body.history,
        Value(arith::AddIOp::create(b, first, body.rows.index(index))));
  };
  PastStep step{load(0), {}, {}};
  if (keepsShare(body.spec.optimizer))
    step.kept = load(1);
  if (body.spec.optimizer.stochasticRounding)
    step.seed = arith::BitcastOp::create(b, b.getI32Type(), load(2));
  return step;
}

/// As if they were written and read back.
static Row roundWeights(const UpdateBody &body, Row weights,
                        const Row &gradient, const PastStep &step) {
  if (step.seed)
    weights =
        roundAtRandom(body.b, body.spec.element, weights, gradient, step.seed);
  return body.rows.rounded(weights,
                           typeOf(body.spec.element, body.b.getContext()));
}

static RowState takeStep(const UpdateBody &body, RowState state, const Row &sum,
                         const PastStep &step) {
  RowBuilder &rows = body.rows;
  const Optimizer &optimizer = body.spec.optimizer;
  Row gradient = addWeightDecay(rows, optimizer, sum, state.weights);
  state.weights = keepWeights(rows, state.weights, step.kept);
  RowState after =
      applyElementwise(rows, optimizer, state, gradient, step.size);
  after.weights = roundWeights(body, after.weights, gradient, step);
  return after;
}

/// A block after the steps [first, end), all with the same gradient.
static RowState takeSteps(const UpdateBody &body, const RowState &before,
                          const Row &gradient, Value first, Value end) {
  ImplicitLocOpBuilder &b = body.b;
  auto join = [](const RowState &state) {
    SmallVector<Value> values(state.weights);
    for (const Row &one : state.states)
      llvm::append_range(values, one);
    return values;
  };
  auto split = [&](ValueRange values) {
    size_t width = before.weights.size();
    RowState state{Row(values.take_front(width)), {}};
    for (size_t i = 1; i <= before.states.size(); ++i)
      state.states.push_back(Row(values.slice(i * width, width)));
    return state;
  };
  auto loop = scf::ForOp::create(
      b, first, end, body.rows.index(1), join(before),
      [&](OpBuilder &, Location, Value number, ValueRange values) {
        RowState after =
            takeStep(body, split(values), gradient, readStep(body, number));
        scf::YieldOp::create(b, join(after));
      });
  return split(loop.getResults());
}

static Value toIndex(ImplicitLocOpBuilder &b, Value count) {
  Value integer = arith::FPToSIOp::create(b, b.getI32Type(), count);
  return arith::IndexCastOp::create(b, b.getIndexType(), integer);
}

void emitCatchUpUpdate(const UpdateBody &body) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  body.inputs.forEachItem([&](Value item) {
    Value row = body.inputs.getRow(item);
    Value ahead = body.inputs.getRowAhead(item);
    prefetchRowState(body, ahead);
    Span run = body.inputs.getRun(item);
    Value taken = toIndex(b, readRowState(body, row));
    Value number = toIndex(b, body.step);
    Value end = arith::AddIOp::create(b, number, rows.index(1));
    Value own = arith::MaxUIOp::create(b, taken, number);
    rows.forEachBlock([&](const ColumnBlock &block) {
      prefetchRow(body, ahead, block);
      RowBefore reads(body, row, block, elementStates(body));
      Row gradient = readGradient(body, block, run);
      RowState state =
          takeSteps(body, reads.get(), rows.zeros(block), taken, number);
      state = takeSteps(body, state, gradient, own, end);
      writeStates(body, state.states, row, block);
      rows.write(state.weights, {body.weights, row}, block);
    });
    Value count = arith::AddFOp::create(b, body.step, rows.constant(1));
    rows.writeScalar(count, body.states.back(), row);
  });
}

} // namespace neuroshard
