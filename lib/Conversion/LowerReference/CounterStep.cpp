//===- CounterStep.cpp - Optimizers with counters, plainly ----------------===//
//
// FBGEMM's rowwise_adagrad_with_counter under counter-based regularization
// with equal learning rates, per row.
//
//===----------------------------------------------------------------------===//

#include "LowerOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace neuroshard {

static Value wideConstant(LoopBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
}

static Value narrow(LoopBuilder &b, Value value) {
  return arith::TruncFOp::create(b, b.getF32Type(), value);
}

/// base ^ exponent, in f64; the exponent is f32.
static Value powerOf(LoopBuilder &b, Value base, Value exponent) {
  Value wide = arith::ExtFOp::create(b, b.getF64Type(), exponent);
  return math::PowFOp::create(b, base, wide);
}

namespace {
/// Factors of the gradient and of the weights.
struct Factors {
  Value ofGradient, ofWeights;
};

/// A row in a step: values that are f32.
struct CountedRow {
  const Optimizer &optimizer;
  Value learningRate, step;
  Value since; ///< steps since its last one.
  Value count; ///< of its steps, with this one.
  Value root;  ///< of its sum, plus eps.

  Value after(LoopBuilder &b, Value before) const;
  Factors factors(LoopBuilder &b) const;

private:
  Factors adagradW(LoopBuilder &b, Value plain) const;
  Value keptByCount(LoopBuilder &b, Value plain) const;
};
} // namespace

/// The count after this step.
Value CountedRow::after(LoopBuilder &b, Value before) const {
  double halflife = optimizer.counterHalflife;
  if (halflife == 0)
    return b.f32(1);
  if (halflife > 0) {
    Value left = powerOf(b, wideConstant(b, std::exp2(-1 / halflife)), since);
    before = b.mul(narrow(b, left), before);
  }
  return b.add(before, b.f32(1));
}

Factors CountedRow::adagradW(LoopBuilder &b, Value plain) const {
  Value factor = plain;
  if (optimizer.counterHalflife == -1)
    factor = b.mul(plain, math::SqrtOp::create(b, count));
  if (optimizer.counterHalflife == -2)
    factor = b.div(arith::MinimumFOp::create(b, b.mul(learningRate, count),
                                             b.f32(optimizer.adjustmentUb)),
                   root);
  Value rate = arith::ExtFOp::create(b, b.getF64Type(), learningRate);
  Value share = b.sub(wideConstant(b, 1),
                      b.mul(wideConstant(b, optimizer.weightDecay), rate));
  Value steps = arith::MinimumFOp::create(
      b, since, b.sub(step, b.f32(optimizer.adjustmentIter)));
  Value late = powerOf(b, share, b.sub(steps, b.f32(1)));
  return {b.mul(factor, narrow(b, late)), narrow(b, b.mul(share, late))};
}

/// 1 - halflife / count * decay * size, where L2 decay is in the row's step.
Value CountedRow::keptByCount(LoopBuilder &b, Value plain) const {
  if (optimizer.weightDecay == 0)
    return b.f32(1);
  Value frequency = b.div(b.f32(optimizer.counterHalflife), count);
  bool isL2 = decayModeOf(optimizer) == WeightDecayMode::L2;
  Value lost = b.mul(b.mul(frequency, b.f32(optimizer.weightDecay)),
                     isL2 ? plain : learningRate);
  return b.sub(b.f32(1), lost);
}

Factors CountedRow::factors(LoopBuilder &b) const {
  Value plain = b.div(learningRate, root);
  bool isAdagradW = decayModeOf(optimizer) == WeightDecayMode::AdagradW;
  Factors adjusted =
      isAdagradW ? adagradW(b, plain) : Factors{plain, keptByCount(b, plain)};
  if (optimizer.adjustmentIter <= 0)
    return adjusted;
  Value isAfter = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, step,
                                        b.f32(optimizer.adjustmentIter));
  return {arith::SelectOp::create(b, isAfter, adjusted.ofGradient, plain),
          arith::SelectOp::create(b, isAfter, adjusted.ofWeights, b.f32(1))};
}

void OptimizerStep::applyCounted(LoopBuilder &b, Value row, Value gradients,
                                 Value position) const {
  Value last = b.load(memory.states[1], row);
  Value isFirst =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, last, b.f32(0));
  CountedRow counted{optimizer, stepSize, number, {}, {}, {}};
  Value since = arith::MaximumFOp::create(b, b.sub(number, last), b.f32(1));
  counted.since = arith::SelectOp::create(b, isFirst, b.f32(1), since);
  counted.count = counted.after(b, b.load(memory.states[2], row));
  b.store(number, memory.states[1], row);
  b.store(counted.count, memory.states[2], row);
  Value sum = addToSum(b, memory.states[0], row,
                       meanOfSquares(b, row, gradients, position));
  counted.root = b.add(math::SqrtOp::create(b, sum), b.f32(optimizer.eps));
  Factors factors = counted.factors(b);
  b.loop(b.index(0), b.index(table.dim), [&](Value column) {
    SmallVector<Value> at = {row, column};
    Value gradient = clampedGradient(b, column, gradients, position);
    Value kept = b.mul(factors.ofWeights, loadF32(b, memory.weights, at));
    Value step = b.mul(factors.ofGradient, gradient);
    storeWeight(b, b.sub(kept, step), gradient, at);
  });
}

} // namespace neuroshard
