//===- CounterRules.cpp - Steps of rows that are counted ------------------===//
//
// FBGEMM's rowwise_adagrad_with_counter under counter-based regularization with
// equal learning rates. Where it has powf and expf, whole powers are products
// here, which are the same on every device.
//
//===----------------------------------------------------------------------===//

#include "CounterRules.h"
#include "OptimizerRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;

namespace neuroshard {

namespace {
class CounterRules {
public:
  CounterRules(ImplicitLocOpBuilder &b, RowBuilder &rows,
               const Optimizer &optimizer, Value learningRate, Value step)
      : b(b), rows(rows), optimizer(optimizer), learningRate(learningRate),
        step(step), mode(decayModeOf(optimizer)) {}

  CountedStep run(int64_t tableDim, ArrayRef<Value> before, Value squaredNorm);

private:
  Value constant(double value) { return rows.constant(value); }
  Value wide(double value) {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value subtract(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value multiply(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value divide(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value widen(Value x) { return arith::ExtFOp::create(b, b.getF64Type(), x); }
  Value narrow(Value x) {
    return arith::TruncFOp::create(b, b.getF32Type(), x);
  }
  Value smaller(Value x, Value y) { return arith::MinimumFOp::create(b, x, y); }
  Value larger(Value x, Value y) { return arith::MaximumFOp::create(b, x, y); }

  Value power(Value base, Value exponent);
  Value stepsSince(Value last);
  Value count(Value before, Value since);
  Value adjust(Value factor, Value root, Value times);
  void decay(CountedStep &result, Value factor, Value root, Value since);
  Value whereAdjusted(Value adjusted, Value plain);

  ImplicitLocOpBuilder &b;
  RowBuilder &rows;
  const Optimizer &optimizer;
  Value learningRate, step;
  WeightDecayMode mode;
};
} // namespace

/// base ^ exponent, in f64, for a whole f32 from 0 to 2^24: the product of the
/// squares of squares that the exponent's bits name. Few rows are away for
/// long, so small exponents take fewer of them.
Value CounterRules::power(Value base, Value exponent) {
  Type i32 = b.getI32Type();
  auto integer = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  Value bits = arith::FPToSIOp::create(b, i32, exponent);
  auto isBelow = [&](int32_t limit) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bits,
                                 integer(limit));
  };
  Value most = arith::SelectOp::create(b, isBelow(1 << 8), rows.index(8),
                                       rows.index(25));
  most = arith::SelectOp::create(b, isBelow(2), rows.index(1), most);
  auto loop = scf::ForOp::create(
      b, rows.index(0), most, rows.index(1), ValueRange{wide(1), base, bits},
      [&](OpBuilder &, Location, Value, ValueRange values) {
        Value product = values[0], square = values[1], rest = values[2];
        Value bit = arith::AndIOp::create(b, rest, integer(1));
        Value isSet =
            arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit, integer(0));
        Value next = arith::SelectOp::create(
            b, isSet, multiply(product, square), product);
        Value shifted = arith::ShRUIOp::create(b, rest, integer(1));
        scf::YieldOp::create(
            b, ValueRange{next, multiply(square, square), shifted});
      });
  return loop.getResult(0);
}

/// Steps since the row's last one, 1 for its first.
Value CounterRules::stepsSince(Value last) {
  Value isFirst =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, last, constant(0));
  Value since = larger(subtract(step, last), constant(1));
  return arith::SelectOp::create(b, isFirst, constant(1), since);
}

Value CounterRules::count(Value before, Value since) {
  double halflife = optimizer.counterHalflife;
  if (halflife == 0)
    return constant(1);
  if (halflife < 0)
    return add(before, constant(1));
  Value left = narrow(power(wide(std::exp2(-1 / halflife)), since));
  return add(constant(1), multiply(left, before));
}

/// `adjusted` in steps after adjustment_iter.
Value CounterRules::whereAdjusted(Value adjusted, Value plain) {
  if (optimizer.adjustmentIter <= 0)
    return adjusted;
  Value isAfter = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, step,
                                        constant(optimizer.adjustmentIter));
  return arith::SelectOp::create(b, isAfter, adjusted, plain);
}

/// The factor of AdagradW, which grows with how often the row was in a step.
Value CounterRules::adjust(Value factor, Value root, Value times) {
  if (optimizer.counterHalflife == -1)
    return multiply(factor, math::SqrtOp::create(b, times));
  if (optimizer.counterHalflife == -2)
    return divide(smaller(multiply(learningRate, times),
                          constant(optimizer.adjustmentUb)),
                  root);
  return factor;
}

void CounterRules::decay(CountedStep &result, Value factor, Value root,
                         Value since) {
  Value times = result.states[2];
  result.factor = factor;
  if (mode == WeightDecayMode::AdagradW) {
    Value lost = multiply(wide(optimizer.weightDecay), widen(learningRate));
    Value kept = subtract(wide(1), lost);
    Value missed = subtract(
        smaller(since, subtract(step, constant(optimizer.adjustmentIter))),
        constant(1));
    Value late = power(kept, larger(missed, constant(0)));
    Value adjusted = multiply(adjust(factor, root, times), narrow(late));
    result.factor = whereAdjusted(adjusted, factor);
    result.kept = whereAdjusted(narrow(multiply(kept, late)), constant(1));
    return;
  }
  if (optimizer.weightDecay == 0)
    return;
  Value share = divide(constant(optimizer.counterHalflife), times);
  Value size = mode == WeightDecayMode::L2 ? factor : learningRate;
  Value lost = multiply(multiply(share, constant(optimizer.weightDecay)), size);
  result.kept = whereAdjusted(subtract(constant(1), lost), constant(1));
}

CountedStep CounterRules::run(int64_t tableDim, ArrayRef<Value> before,
                              Value squaredNorm) {
  CountedStep result;
  Value sum =
      stepRowState(b, rows, optimizer, tableDim, before[0], squaredNorm);
  Value since = stepsSince(before[1]);
  result.states = {sum, step, count(before[2], since)};
  Value root = add(math::SqrtOp::create(b, sum), constant(optimizer.eps));
  decay(result, divide(learningRate, root), root, since);
  return result;
}

CountedStep stepCounted(ImplicitLocOpBuilder &b, RowBuilder &rows,
                        const Optimizer &optimizer, int64_t tableDim,
                        ArrayRef<Value> before, Value squaredNorm,
                        Value learningRate, Value step) {
  return CounterRules(b, rows, optimizer, learningRate, step)
      .run(tableDim, before, squaredNorm);
}

} // namespace neuroshard
