//===- TrustStep.cpp - Optimizers with trust ratios, plainly --------------===//
//
// LARS_SGD, LAMB and PARTIAL_ROWWISE_LAMB as FBGEMM defines them, per row, but
// that a ratio of 0 / 0 is 0. Norms are added up column by column.
//
//===----------------------------------------------------------------------===//

#include "LowerOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace neuroshard {

/// The root of the sum of the squares of `value` over a row's columns.
static Value normOf(LoopBuilder &b, int64_t columns,
                    llvm::function_ref<Value(Value column)> value) {
  Value sum = b.fold(b.index(0), b.index(columns), b.f32(0),
                     [&](Value column, Value sum) {
                       Value x = value(column);
                       return b.add(sum, b.mul(x, x));
                     });
  return math::SqrtOp::create(b, sum);
}

/// The step of a row's moments: LAMB's alone, as LARS's buffer takes the step
/// itself.
void OptimizerStep::stepMoments(LoopBuilder &b, Value row, Value gradients,
                                Value position) const {
  if (memory.states.size() < 2)
    return;
  auto gradient = [&](Value column) {
    return clampedGradient(b, column, gradients, position);
  };
  bool isPerRow = isRowWise(optimizer.kind);
  if (isPerRow) {
    Value norm = b.fold(b.index(0), b.index(table.dim), b.f32(0),
                        [&](Value column, Value sum) {
                          Value g = gradient(column);
                          return b.add(sum, b.mul(g, g));
                        });
    movingAverage(b, memory.states[1], row, optimizer.beta2,
                  b.div(norm, b.f32(static_cast<double>(table.dim))));
  }
  b.loop(b.index(0), b.index(table.dim), [&](Value column) {
    Value g = gradient(column);
    movingAverage(b, memory.states[0], {row, column}, optimizer.beta1, g);
    if (!isPerRow)
      movingAverage(b, memory.states[1], {row, column}, optimizer.beta2,
                    b.mul(g, g));
  });
}

/// What the step of a weight multiplies: g of LARS, m^ / (sqrt(v^) + eps) of
/// LAMB; plus decay * w.
Value OptimizerStep::trustDirection(LoopBuilder &b, Value row, Value column,
                                    Value gradients, Value position) const {
  SmallVector<Value> at = {row, column};
  Value direction;
  if (memory.states.size() < 2) {
    direction = clampedGradient(b, column, gradients, position);
  } else {
    bool isPerRow = isRowWise(optimizer.kind);
    Value square =
        isPerRow ? b.load(memory.states[1], row) : b.load(memory.states[1], at);
    Value root = b.mul(second, math::SqrtOp::create(b, square));
    direction = b.div(b.mul(first, b.load(memory.states[0], at)),
                      b.add(root, b.f32(optimizer.eps)));
  }
  if (optimizer.weightDecay == 0)
    return direction;
  Value weight = loadF32(b, memory.weights, at);
  return b.add(direction, b.mul(b.f32(optimizer.weightDecay), weight));
}

/// lr * |w| / |direction| of LAMB, lr * eta * |w| / (|g| + decay * |w|) of
/// LARS.
Value OptimizerStep::trustRatio(LoopBuilder &b, Value row, Value gradients,
                                Value position) const {
  Value weights = normOf(b, table.dim, [&](Value column) {
    return loadF32(b, memory.weights, {row, column});
  });
  bool isLars = propertiesOf(optimizer.kind).hasEta;
  Value bottom = normOf(b, table.dim, [&](Value column) {
    return isLars ? clampedGradient(b, column, gradients, position)
                  : trustDirection(b, row, column, gradients, position);
  });
  Value size = stepSize;
  if (isLars) {
    bottom = b.add(bottom, b.mul(b.f32(optimizer.weightDecay), weights));
    size = b.mul(size, b.f32(optimizer.eta));
  }
  Value isZero =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, bottom, b.f32(0));
  Value ratio = b.mul(size, b.div(weights, bottom));
  return arith::SelectOp::create(b, isZero, b.f32(0), ratio);
}

void OptimizerStep::applyWithTrust(LoopBuilder &b, Value row, Value gradients,
                                   Value position) const {
  stepMoments(b, row, gradients, position);
  Value ratio = trustRatio(b, row, gradients, position);
  b.loop(b.index(0), b.index(table.dim), [&](Value column) {
    SmallVector<Value> at = {row, column};
    Value direction = trustDirection(b, row, column, gradients, position);
    Value step = b.mul(ratio, direction);
    if (memory.states.size() < 2) {
      Value kept = b.mul(b.f32(optimizer.beta1), b.load(memory.states[0], at));
      step = b.add(kept, step);
      b.store(step, memory.states[0], at);
    }
    Value weight = loadF32(b, memory.weights, at);
    storeWeight(b, b.sub(weight, step), direction, at);
  });
}

} // namespace neuroshard
