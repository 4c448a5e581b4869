//===- OptimizerStep.cpp - The optimizers, one element at a time ----------===//
//
// SGD, Adagrad and lazy Adam as torch.optim (SGD, Adagrad, SparseAdam) does
// them; rowwise Adagrad adds the mean over the row of the squared gradient to
// one accumulator per row. All in f32, weights rounded once; Adam's step size
// is computed in f64 and rounded.
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
      stepSize(optimizer.kind == OptimizerKind::Adam
                   ? adamStepSize(b, learningRate, step)
                   : learningRate) {}

/// lr * sqrt(1 - beta2^step) / (1 - beta1^step)
Value OptimizerStep::adamStepSize(LoopBuilder &b, Value learningRate,
                                  Value step) const {
  Type f64 = b.getF64Type();
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  };
  Value exponent = arith::SIToFPOp::create(b, f64, step);
  auto correction = [&](double beta) {
    Value power = math::PowFOp::create(b, constant(beta), exponent);
    return b.sub(constant(1), power);
  };
  Value rate = arith::ExtFOp::create(b, f64, learningRate);
  Value root = math::SqrtOp::create(b, correction(optimizer.beta2));
  Value size = b.div(b.mul(rate, root), correction(optimizer.beta1));
  return arith::TruncFOp::create(b, b.getF32Type(), size);
}

/// The gradient with weight decay.
Value OptimizerStep::gradientOf(LoopBuilder &b, Value row, Value column,
                                Value gradients, Value position) const {
  Value gradient = b.load(gradients, {position, column});
  if (optimizer.weightDecay == 0)
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

/// accumulator += mean of squared gradient; lr / (sqrt(accumulator) + eps)
Value OptimizerStep::rowwiseFactor(LoopBuilder &b, Value row, Value gradients,
                                   Value position) const {
  Value norm = b.fold(
      b.index(0), b.index(table.dim), b.f32(0), [&](Value column, Value sum) {
        Value gradient = gradientOf(b, row, column, gradients, position);
        return b.add(sum, b.mul(gradient, gradient));
      });
  Value mean = b.div(norm, b.f32(static_cast<double>(table.dim)));
  Value sum = b.add(b.load(memory.states[0], row), mean);
  b.store(sum, memory.states[0], row);
  return divideByRoot(b, stepSize, sum);
}

/// The step of one weight by an elementwise optimizer, which also updates its
/// state.
Value OptimizerStep::stepOf(LoopBuilder &b, Value row, Value column,
                            Value gradient) const {
  SmallVector<Value> at = {row, column};
  if (optimizer.kind == OptimizerKind::SGD)
    return b.mul(stepSize, gradient);
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

void OptimizerStep::apply(LoopBuilder &b, Value row, Value gradients,
                          Value position) const {
  bool isRowwise = optimizer.kind == OptimizerKind::RowWiseAdagrad;
  Value factor =
      isRowwise ? rowwiseFactor(b, row, gradients, position) : Value();
  b.loop(b.index(0), b.index(table.dim), [&](Value column) {
    Value gradient = gradientOf(b, row, column, gradients, position);
    Value step =
        isRowwise ? b.mul(factor, gradient) : stepOf(b, row, column, gradient);
    Value weight = loadF32(b, memory.weights, {row, column});
    storeRounded(b, b.sub(weight, step), memory.weights, {row, column});
  });
}

} // namespace neuroshard
