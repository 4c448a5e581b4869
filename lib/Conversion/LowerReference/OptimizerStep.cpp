//===- OptimizerStep.cpp - The optimizers, one element at a time ----------===//
//
// SGD, momentum, Adagrad and lazy Adam as torch.optim (SGD, Adagrad,
// SparseAdam) does them, AdamW with torch.optim.AdamW's decay before Adam's
// step; FTRL as McMahan et al. (2013) do it; rowwise optimizers take the mean
// over the row of the squared gradient into one state per row; those with a
// trust ratio are in TrustStep.cpp. All in f32, weights rounded once; the step
// size and the share of the weights that decay keeps are computed in f64 and
// rounded.
//
//===----------------------------------------------------------------------===//

#include "LowerOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace neuroshard {

OptimizerStep::OptimizerStep(LoopBuilder &b, const TableInfo &table,
                             const TableMemory &memory, Value learningRate,
                             Value step)
    : table(table), memory(memory), optimizer(table.optimizer->getOptimizer()),
      stepSize(propertiesOf(optimizer.kind).correctsBias && !hasTrustRatio()
                   ? correctedRate(b, learningRate, step)
                   : learningRate),
      kept(keepsShare(optimizer) ? keptShare(b, learningRate) : Value()),
      seed(optimizer.stochasticRounding ? seedOfStep(b, step) : Value()) {
  if (propertiesOf(optimizer.kind).correctsBias && hasTrustRatio())
    addMomentFactors(b, step);
  if (propertiesOf(optimizer.kind).hasCounters)
    number = arith::SIToFPOp::create(b, b.getF32Type(), step);
}

bool OptimizerStep::hasTrustRatio() const {
  return propertiesOf(optimizer.kind).hasTrustRatio;
}

/// 1 - lr * decay
Value OptimizerStep::keptShare(LoopBuilder &b, Value learningRate) const {
  Type f64 = b.getF64Type();
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  };
  Value rate = arith::ExtFOp::create(b, f64, learningRate);
  Value lost = b.mul(rate, constant(optimizer.weightDecay));
  return arith::TruncFOp::create(b, b.getF32Type(), b.sub(constant(1), lost));
}

/// 1 - beta^step in f64.
static Value biasCorrection(LoopBuilder &b, double beta, Value step) {
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  };
  Value exponent = arith::SIToFPOp::create(b, b.getF64Type(), step);
  Value power = math::PowFOp::create(b, constant(beta), exponent);
  return b.sub(constant(1), power);
}

/// lr * sqrt(1 - beta2^step) / (1 - beta1^step)
Value OptimizerStep::correctedRate(LoopBuilder &b, Value learningRate,
                                   Value step) const {
  Value rate = arith::ExtFOp::create(b, b.getF64Type(), learningRate);
  Value root =
      math::SqrtOp::create(b, biasCorrection(b, optimizer.beta2, step));
  Value size =
      b.div(b.mul(rate, root), biasCorrection(b, optimizer.beta1, step));
  return arith::TruncFOp::create(b, b.getF32Type(), size);
}

/// 1 / (1 - beta1^step) and 1 / sqrt(1 - beta2^step)
void OptimizerStep::addMomentFactors(LoopBuilder &b, Value step) {
  Value one = arith::ConstantOp::create(b, b.getF64FloatAttr(1));
  Value root =
      math::SqrtOp::create(b, biasCorrection(b, optimizer.beta2, step));
  auto inverse = [&](Value value) -> Value {
    return arith::TruncFOp::create(b, b.getF32Type(), b.div(one, value));
  };
  first = inverse(biasCorrection(b, optimizer.beta1, step));
  second = inverse(root);
}

/// The gradient, clamped.
Value OptimizerStep::clampedGradient(LoopBuilder &b, Value column,
                                     Value gradients, Value position) const {
  Value gradient = b.load(gradients, {position, column});
  if (double bound = optimizer.maxGradient; bound != 0) {
    gradient = arith::MinimumFOp::create(b, gradient, b.f32(bound));
    gradient = arith::MaximumFOp::create(b, gradient, b.f32(-bound));
  }
  return gradient;
}

/// The gradient, clamped, with L2 weight decay.
Value OptimizerStep::gradientOf(LoopBuilder &b, Value row, Value column,
                                Value gradients, Value position) const {
  Value gradient = clampedGradient(b, column, gradients, position);
  if (weightDecayOf(optimizer) != WeightDecayMode::L2)
    return gradient;
  Value weight = loadF32(b, memory.weights, {row, column});
  return b.add(gradient, b.mul(b.f32(optimizer.weightDecay), weight));
}

/// state = beta * state + (1 - beta) * value
Value OptimizerStep::movingAverage(LoopBuilder &b, Value state,
                                   ValueRange indices, double beta,
                                   Value value) const {
  Value next = b.add(b.mul(b.f32(beta), b.load(state, indices)),
                     b.mul(b.f32(1.0 - beta), value));
  b.store(next, state, indices);
  return next;
}

/// numerator / (sqrt(square) + eps)
Value OptimizerStep::divideByRoot(LoopBuilder &b, Value numerator,
                                  Value square) const {
  Value root = math::SqrtOp::create(b, square);
  return b.div(numerator, b.add(root, b.f32(optimizer.eps)));
}

/// Over the columns of a row, whose gradient has L2 decay.
Value OptimizerStep::meanOfSquares(LoopBuilder &b, Value row, Value gradients,
                                   Value position) const {
  Value squares = b.fold(
      b.index(0), b.index(table.dim), b.f32(0), [&](Value column, Value sum) {
        Value gradient = gradientOf(b, row, column, gradients, position);
        return b.add(sum, b.mul(gradient, gradient));
      });
  return b.div(squares, b.f32(static_cast<double>(table.dim)));
}

/// Adds a value to the state of a row; gives the sum.
Value OptimizerStep::addToSum(LoopBuilder &b, Value states, Value row,
                              Value value) const {
  Value sum = b.add(b.load(states, row), value);
  b.store(sum, states, row);
  return sum;
}

/// The step of the row's state by the mean of the squared gradient, and
/// lr / (sqrt(state) + eps)
Value OptimizerStep::rowwiseFactor(LoopBuilder &b, Value row, Value gradients,
                                   Value position) const {
  Value mean = meanOfSquares(b, row, gradients, position);
  Value states = memory.states.back();
  if (propertiesOf(optimizer.kind).hasBeta2)
    return divideByRoot(b, stepSize,
                        movingAverage(b, states, row, optimizer.beta2, mean));
  return divideByRoot(b, stepSize, addToSum(b, states, row, mean));
}

/// What a row's factor multiplies: the gradient, or the first moment that it
/// updates.
Value OptimizerStep::rowwiseDirection(LoopBuilder &b, Value row, Value column,
                                      Value gradient) const {
  if (optimizerStates(optimizer).perElement == 0)
    return gradient;
  return movingAverage(b, memory.states[0], {row, column}, optimizer.beta1,
                       gradient);
}

/// The new weight by algorithm 1 of McMahan et al.:
/// sigma = (sqrt(n') - sqrt(n)) / lr; z' = z + g - sigma * w;
/// 0 if |z'| <= l1, else (sign(z') * l1 - z') / ((sqrt(n') + eps) / lr + l2).
Value OptimizerStep::weightOfFTRL(LoopBuilder &b, ValueRange at,
                                  Value gradient) const {
  Value before = b.load(memory.states[0], at);
  Value sum = b.add(before, b.mul(gradient, gradient));
  b.store(sum, memory.states[0], at);
  Value root = math::SqrtOp::create(b, sum);
  Value sigma = b.div(b.sub(root, math::SqrtOp::create(b, before)), stepSize);
  Value moved = b.mul(sigma, loadF32(b, memory.weights, at));
  Value linear = b.sub(b.add(b.load(memory.states[1], at), gradient), moved);
  b.store(linear, memory.states[1], at);
  Value penalty = b.f32(optimizer.l1Penalty);
  Value size = math::AbsFOp::create(b, linear);
  Value isBeyond =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, size, penalty);
  Value top =
      b.sub(math::CopySignOp::create(b, penalty, linear).getResult(), linear);
  Value bottom = b.add(b.div(b.add(root, b.f32(optimizer.eps)), stepSize),
                       b.f32(optimizer.l2Penalty));
  return arith::SelectOp::create(b, isBeyond, b.div(top, bottom), b.f32(0));
}

/// The step of one weight by an elementwise optimizer, which also updates its
/// state.
Value OptimizerStep::stepOf(LoopBuilder &b, Value row, Value column,
                            Value gradient) const {
  SmallVector<Value> at = {row, column};
  if (optimizer.kind == OptimizerKind::SGD)
    return b.mul(stepSize, gradient);
  if (optimizer.kind == OptimizerKind::Momentum) {
    Value old = b.mul(b.f32(optimizer.beta1), b.load(memory.states[0], at));
    Value buffer = b.add(old, gradient);
    b.store(buffer, memory.states[0], at);
    return b.mul(stepSize, buffer);
  }
  Value squared = b.mul(gradient, gradient);
  if (optimizer.kind == OptimizerKind::Adagrad) {
    Value sum = b.add(b.load(memory.states[0], at), squared);
    b.store(sum, memory.states[0], at);
    return b.mul(stepSize, divideByRoot(b, gradient, sum));
  }
  Value first =
      movingAverage(b, memory.states[0], at, optimizer.beta1, gradient);
  Value second =
      movingAverage(b, memory.states[1], at, optimizer.beta2, squared);
  return b.mul(stepSize, divideByRoot(b, first, second));
}

/// The new weight, of which states have had their step.
Value OptimizerStep::nextWeight(LoopBuilder &b, Value row, Value column,
                                Value gradient, Value rowFactor) const {
  if (optimizer.kind == OptimizerKind::FTRL)
    return weightOfFTRL(b, {row, column}, gradient);
  Value step =
      rowFactor ? b.mul(rowFactor, rowwiseDirection(b, row, column, gradient))
                : stepOf(b, row, column, gradient);
  Value weight = loadF32(b, memory.weights, {row, column});
  if (kept)
    weight = b.mul(kept, weight);
  return b.sub(weight, step);
}

void OptimizerStep::apply(LoopBuilder &b, Value row, Value gradients,
                          Value position) const {
  if (hasTrustRatio())
    return applyWithTrust(b, row, gradients, position);
  if (propertiesOf(optimizer.kind).hasCounters)
    return applyCounted(b, row, gradients, position);
  bool isRowwise = isRowWise(optimizer.kind);
  Value factor =
      isRowwise ? rowwiseFactor(b, row, gradients, position) : Value();
  b.loop(b.index(0), b.index(table.dim), [&](Value column) {
    Value gradient = gradientOf(b, row, column, gradients, position);
    Value weight = nextWeight(b, row, column, gradient, factor);
    storeWeight(b, weight, gradient, {row, column});
  });
}

void OptimizerStep::storeWeight(LoopBuilder &b, Value weight, Value gradient,
                                ValueRange at) const {
  if (seed)
    weight = roundStochastically(b, weight, gradient, seed, table.elementType);
  storeRounded(b, weight, memory.weights, at);
}

} // namespace neuroshard
