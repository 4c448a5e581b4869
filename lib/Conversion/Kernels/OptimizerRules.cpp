//===- OptimizerRules.cpp - The arithmetic of the optimizers --------------===//
//
// The order of operations is that of torch.optim (SGD, Adagrad, SparseAdam)
// and, for rowwise Adagrad, of FBGEMM's EXACT_ROWWISE_ADAGRAD.
//
//===----------------------------------------------------------------------===//

#include "OptimizerRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace neuroshard {

Row addWeightDecay(RowBuilder &rows, const Optimizer &optimizer,
                   const Row &gradient, const Row &weights) {
  if (optimizer.weightDecay == 0)
    return gradient;
  Value decay = rows.constant(optimizer.weightDecay);
  return rows.add(gradient, rows.scale(decay, weights));
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

/// beta * average + (1 - beta) * value.
static Row movingAverage(RowBuilder &rows, double beta, const Row &average,
                         const Row &value) {
  Row kept = rows.scale(rows.constant(beta), average);
  Row added = rows.scale(rows.constant(1.0 - beta), value);
  return rows.add(kept, added);
}

RowState applyElementwise(RowBuilder &rows, const Optimizer &optimizer,
                          const RowState &state, const Row &gradient,
                          Value stepSize) {
  if (optimizer.kind == OptimizerKind::SGD)
    return {rows.subtract(state.weights, rows.scale(stepSize, gradient)), {}};

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

Value accumulateRowwise(ImplicitLocOpBuilder &b, RowBuilder &rows,
                        int64_t tableDim, Value accumulator,
                        Value squaredNorm) {
  Value mean = arith::DivFOp::create(
      b, squaredNorm, rows.constant(static_cast<double>(tableDim)));
  return arith::AddFOp::create(b, accumulator, mean);
}

Value rowwiseFactor(ImplicitLocOpBuilder &b, RowBuilder &rows,
                    const Optimizer &optimizer, Value accumulator,
                    Value stepSize) {
  Value root = math::SqrtOp::create(b, accumulator);
  Value denominator =
      arith::AddFOp::create(b, root, rows.constant(optimizer.eps));
  return arith::DivFOp::create(b, stepSize, denominator);
}

} // namespace neuroshard
