//===- OptimizerRules.cpp - The arithmetic of the optimizers --------------===//
//
// The order of operations is that of torch.optim (SGD, Adagrad, SparseAdam; the
// decay of AdamW) and, for rowwise optimizers, of FBGEMM's
// EXACT_ROWWISE_ADAGRAD and PARTIAL_ROWWISE_ADAM. FTRL is algorithm 1 of
// McMahan et al., Ad Click Prediction: a View from the Trenches (KDD 2013),
// with the weight that follows from the states stored after each step.
//
//===----------------------------------------------------------------------===//

#include "OptimizerRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace neuroshard {

Row clipGradient(RowBuilder &rows, const Optimizer &optimizer,
                 const Row &gradient) {
  if (optimizer.maxGradient == 0)
    return gradient;
  return rows.clamp(gradient, rows.constant(optimizer.maxGradient));
}

Row addWeightDecay(RowBuilder &rows, const Optimizer &optimizer,
                   const Row &gradient, const Row &weights) {
  if (weightDecayOf(optimizer) != WeightDecayMode::L2)
    return gradient;
  Value decay = rows.constant(optimizer.weightDecay);
  return rows.add(gradient, rows.scale(decay, weights));
}

Row keepWeights(RowBuilder &rows, const Row &weights, Value kept) {
  return kept ? rows.scale(kept, weights) : weights;
}

/// weights - stepSize * (numerator / (sqrt(squares) + eps)).
static Row stepByRoot(RowBuilder &rows, const Optimizer &optimizer,
                      const Row &weights, const Row &numerator,
                      const Row &squares, Value stepSize) {
  Row root = rows.squareRoot(squares);
  Row denominator = rows.addScalar(root, rows.constant(optimizer.eps));
  Row step = rows.scale(stepSize, rows.divide(numerator, denominator));
  return rows.subtract(weights, step);
}

Row movingAverage(RowBuilder &rows, double beta, const Row &average,
                  const Row &value) {
  Row kept = rows.scale(rows.constant(beta), average);
  Row added = rows.scale(rows.constant(1.0 - beta), value);
  return rows.add(kept, added);
}

/// weights - factor * direction.
static Row stepBy(RowBuilder &rows, const Row &weights, Value factor,
                  const Row &direction) {
  return rows.subtract(weights, rows.scale(factor, direction));
}

/// sigma = (sqrt(n') - sqrt(n)) / lr; z' = z + g - sigma * w; then
/// w' = -(z' - clamp(z', l1)) / ((sqrt(n') + eps) / lr + l2), which is 0 where
/// |z'| <= l1.
static RowState stepByFTRL(RowBuilder &rows, const Optimizer &optimizer,
                           const RowState &state, const Row &gradient,
                           Value stepSize) {
  const Row &before = state.states[0];
  Row sum = rows.add(before, rows.multiply(gradient, gradient));
  Row root = rows.squareRoot(sum);
  Row sigma = rows.divideByScalar(rows.subtract(root, rows.squareRoot(before)),
                                  stepSize);
  Row linear = rows.subtract(rows.add(state.states[1], gradient),
                             rows.multiply(sigma, state.weights));
  Row inside = rows.clamp(linear, rows.constant(optimizer.l1Penalty));
  Row curvature = rows.addScalar(
      rows.divideByScalar(rows.addScalar(root, rows.constant(optimizer.eps)),
                          stepSize),
      rows.constant(optimizer.l2Penalty));
  return {rows.divide(rows.subtract(inside, linear), curvature), {sum, linear}};
}

RowState applyElementwise(RowBuilder &rows, const Optimizer &optimizer,
                          const RowState &state, const Row &gradient,
                          Value stepSize) {
  if (optimizer.kind == OptimizerKind::SGD)
    return {stepBy(rows, state.weights, stepSize, gradient), {}};
  if (optimizer.kind == OptimizerKind::Momentum) {
    Row kept = rows.scale(rows.constant(optimizer.beta1), state.states[0]);
    Row buffer = rows.add(kept, gradient);
    return {stepBy(rows, state.weights, stepSize, buffer), {buffer}};
  }
  if (optimizer.kind == OptimizerKind::FTRL)
    return stepByFTRL(rows, optimizer, state, gradient, stepSize);

  Row squared = rows.multiply(gradient, gradient);
  if (optimizer.kind == OptimizerKind::Adagrad) {
    Row sum = rows.add(state.states[0], squared);
    return {stepByRoot(rows, optimizer, state.weights, gradient, sum, stepSize),
            {sum}};
  }
  Row first = movingAverage(rows, optimizer.beta1, state.states[0], gradient);
  Row second = movingAverage(rows, optimizer.beta2, state.states[1], squared);
  return {stepByRoot(rows, optimizer, state.weights, first, second, stepSize),
          {first, second}};
}

Value stepRowState(ImplicitLocOpBuilder &b, RowBuilder &rows,
                   const Optimizer &optimizer, int64_t tableDim, Value before,
                   Value squaredNorm) {
  Value added = arith::DivFOp::create(
      b, squaredNorm, rows.constant(static_cast<double>(tableDim)));
  if (propertiesOf(optimizer.kind).hasBeta2) {
    before = arith::MulFOp::create(b, rows.constant(optimizer.beta2), before);
    added =
        arith::MulFOp::create(b, rows.constant(1.0 - optimizer.beta2), added);
  }
  return arith::AddFOp::create(b, before, added);
}

Value rowwiseFactor(ImplicitLocOpBuilder &b, RowBuilder &rows,
                    const Optimizer &optimizer, Value rowState,
                    Value stepSize) {
  Value root = math::SqrtOp::create(b, rowState);
  Value denominator =
      arith::AddFOp::create(b, root, rows.constant(optimizer.eps));
  return arith::DivFOp::create(b, stepSize, denominator);
}

RowState applyRowwise(RowBuilder &rows, const Optimizer &optimizer,
                      const RowState &state, const Row &gradient,
                      Value factor) {
  if (state.states.empty())
    return {stepBy(rows, state.weights, factor, gradient), {}};
  Row first = movingAverage(rows, optimizer.beta1, state.states[0], gradient);
  return {stepBy(rows, state.weights, factor, first), {first}};
}

} // namespace neuroshard
