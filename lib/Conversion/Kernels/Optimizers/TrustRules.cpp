//===- TrustRules.cpp - Arithmetic of trust ratios ------------------------===//
//
// The formulas of FBGEMM's LARS_SGD, LAMB and PARTIAL_ROWWISE_LAMB, of which
// LARS is that of You et al., Large Batch Training of Convolutional Networks
// (2017), and LAMB that of You et al., Large Batch Optimization for Deep
// Learning (2020), per row.
//
//===----------------------------------------------------------------------===//

#include "TrustRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace neuroshard {

bool stepsBeforeSums(const Optimizer &optimizer) {
  return propertiesOf(optimizer.kind).correctsBias;
}

/// Whether the second moment is one of the row, known only with the sums.
static bool hasRowState(const Optimizer &optimizer) {
  return isRowWise(optimizer.kind);
}

SmallVector<Row, 2> stepMoments(RowBuilder &rows, const Optimizer &optimizer,
                                ArrayRef<Row> states, const Row &gradient) {
  SmallVector<Row, 2> after = {
      movingAverage(rows, optimizer.beta1, states[0], gradient)};
  if (!hasRowState(optimizer))
    after.push_back(movingAverage(rows, optimizer.beta2, states[1],
                                  rows.multiply(gradient, gradient)));
  return after;
}

/// direction + decay * weights
static Row addDecay(RowBuilder &rows, const Optimizer &optimizer,
                    const Row &direction, const Row &weights) {
  if (optimizer.weightDecay == 0)
    return direction;
  return rows.add(direction,
                  rows.scale(rows.constant(optimizer.weightDecay), weights));
}

Row trustDirection(RowBuilder &rows, const Optimizer &optimizer,
                   const Row &weights, ArrayRef<Row> moments,
                   const Row &gradient, const MomentFactors &factors) {
  if (!stepsBeforeSums(optimizer))
    return addDecay(rows, optimizer, gradient, weights);
  if (hasRowState(optimizer))
    return moments[0];
  Row root = rows.scale(factors.second, rows.squareRoot(moments[1]));
  Row bottom = rows.addScalar(root, rows.constant(optimizer.eps));
  Row adapted = rows.divide(rows.scale(factors.first, moments[0]), bottom);
  return addDecay(rows, optimizer, adapted, weights);
}

SmallVector<Row> trustProducts(RowBuilder &rows, const Optimizer &optimizer,
                               const Row &weights, const Row &gradient,
                               const Row &direction) {
  Row squared = rows.multiply(weights, weights);
  if (!stepsBeforeSums(optimizer))
    return {rows.multiply(gradient, gradient), squared};
  if (!hasRowState(optimizer))
    return {rows.multiply(direction, direction), squared};
  return {rows.multiply(gradient, gradient),
          rows.multiply(direction, direction),
          rows.multiply(direction, weights), squared};
}

/// top / bottom, or 0 where bottom is 0.
static Value divideOrZero(ImplicitLocOpBuilder &b, RowBuilder &rows, Value top,
                          Value bottom) {
  Value zero = rows.constant(0);
  Value isZero =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, bottom, zero);
  Value ratio = arith::DivFOp::create(b, top, bottom);
  return arith::SelectOp::create(b, isZero, zero, ratio);
}

namespace {
/// f32 scalars.
class Scalars {
public:
  Scalars(ImplicitLocOpBuilder &b, RowBuilder &rows) : b(b), rows(rows) {}

  Value constant(double value) { return rows.constant(value); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value multiply(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value divide(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value root(Value x) { return math::SqrtOp::create(b, x); }

private:
  ImplicitLocOpBuilder &b;
  RowBuilder &rows;
};
} // namespace

/// |a m' + decay w|^2 of the sums of m'^2, m' w and w^2: not below 0.
static Value squaredNormOf(ImplicitLocOpBuilder &b, RowBuilder &rows,
                           const Optimizer &optimizer, ArrayRef<Value> sums,
                           Value ofMoment) {
  Scalars f(b, rows);
  double decay = optimizer.weightDecay;
  Value ofMoments = f.multiply(ofMoment, sums[1]);
  if (decay == 0)
    return f.multiply(ofMoment, ofMoments);
  Value mixed = f.multiply(f.constant(2 * decay), sums[2]);
  Value ofWeights = f.multiply(f.constant(decay * decay), sums[3]);
  Value norm = f.add(f.multiply(ofMoment, f.add(ofMoments, mixed)), ofWeights);
  return arith::MaximumFOp::create(b, norm, rows.constant(0));
}

TrustStep trustStep(ImplicitLocOpBuilder &b, RowBuilder &rows,
                    const Optimizer &optimizer, ArrayRef<Value> sums,
                    Value rowState, Value stepSize,
                    const MomentFactors &factors) {
  Scalars f(b, rows);
  Value weights = f.root(sums.back());
  if (!stepsBeforeSums(optimizer)) {
    Value bottom = f.root(sums[0]);
    if (optimizer.weightDecay != 0)
      bottom =
          f.add(bottom, f.multiply(f.constant(optimizer.weightDecay), weights));
    Value scaled = f.multiply(stepSize, f.constant(optimizer.eta));
    return {divideOrZero(b, rows, f.multiply(scaled, weights), bottom)};
  }
  Value ofMoment, norm = sums[0];
  if (hasRowState(optimizer)) {
    Value bottom = f.add(f.multiply(factors.second, f.root(rowState)),
                         f.constant(optimizer.eps));
    ofMoment = f.divide(factors.first, bottom);
    norm = squaredNormOf(b, rows, optimizer, sums, ofMoment);
  }
  Value ratio = divideOrZero(b, rows, weights, f.root(norm));
  return {f.multiply(stepSize, ratio), ofMoment};
}

Row finalDirection(RowBuilder &rows, const Optimizer &optimizer,
                   const Row &weights, const Row &direction,
                   const TrustStep &step) {
  if (!step.ofMoment)
    return direction;
  return addDecay(rows, optimizer, rows.scale(step.ofMoment, direction),
                  weights);
}

RowState applyTrust(RowBuilder &rows, const Optimizer &optimizer,
                    const RowState &state, const Row &direction,
                    const TrustStep &step) {
  Row moved = rows.scale(step.size, direction);
  if (stepsBeforeSums(optimizer))
    return {rows.subtract(state.weights, moved), {}};
  Row kept = rows.scale(rows.constant(optimizer.beta1), state.states[0]);
  Row buffer = rows.add(kept, moved);
  return {rows.subtract(state.weights, buffer), {buffer}};
}

} // namespace neuroshard
