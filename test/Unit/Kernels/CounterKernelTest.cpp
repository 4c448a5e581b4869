//===- CounterKernelTest.cpp - Steps of counted rows and a scalar loop ----===//
//
// Row-wise Adagrad with counter, in one phase and in two, equals FBGEMM's
// formulas in double precision within some units in the last place, rows of a
// first step, of the step before and of steps long ago, before and after
// adjustment_iter. Other rows, padding and memory past the arrays stay.

#include "UpdateCase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

/// What a step makes of a row's states, and its factors.
struct Counted {
  double sum, count, factor, kept;
};

bool isAdjusted(const Optimizer &optimizer) {
  return optimizer.adjustmentIter <= 0 || kStep > optimizer.adjustmentIter;
}

/// `rowwise_adagrad_with_counter` of FBGEMM, regularization mode 3.
Counted stepOf(const Optimizer &optimizer, double sum, double last,
               double count, double meanSquare) {
  double halflife = optimizer.counterHalflife;
  double since = last == 0 ? 1 : kStep - last;
  Counted after;
  if (halflife > 0)
    after.count = 1 + std::exp(-since * std::log(2.0) / halflife) * count;
  else
    after.count = halflife == 0 ? 1 : count + 1;
  after.sum = sum + meanSquare;
  double root = std::sqrt(after.sum) + optimizer.eps;
  after.factor = kStepSize / root;
  after.kept = 1;
  if (!isAdjusted(optimizer))
    return after;
  double decay = optimizer.weightDecay, share = halflife / after.count;
  WeightDecayMode mode = decayModeOf(optimizer);
  if (mode == WeightDecayMode::L2)
    after.kept -= share * decay * after.factor;
  if (mode == WeightDecayMode::Decoupled)
    after.kept -= share * decay * kStepSize;
  if (mode != WeightDecayMode::AdagradW)
    return after;
  if (halflife == -1)
    after.factor *= std::sqrt(after.count);
  if (halflife == -2)
    after.factor =
        std::min(kStepSize * after.count, optimizer.adjustmentUb) / root;
  double kept = 1 - decay * kStepSize;
  double late =
      std::pow(kept, std::min(since, kStep - optimizer.adjustmentIter) - 1);
  after.factor *= late;
  after.kept = kept * late;
  return after;
}

/// As far as rounding of few operations may be from `value`.
double near(double value) {
  return 16 * std::abs(value) * std::ldexp(1.0, -24) + 1e-30;
}

void checkRow(UpdatedSlot &shard, int64_t row,
              const std::vector<float> &gradient, double norm) {
  const SlotSpec &slot = shard.spec;
  Counted expected = stepOf(
      *slot.optimizer, shard.initialRows[0][row], shard.initialRows[1][row],
      shard.initialRows[2][row], norm / static_cast<double>(getTableDim(slot)));
  ASSERT_NEAR(shard.rowState[row], expected.sum, near(expected.sum))
      << "row " << row;
  ASSERT_EQ(shard.lastSteps[row], kStep) << "row " << row;
  ASSERT_NEAR(shard.counts[row], expected.count, near(expected.count))
      << "row " << row;
  for (int64_t column = 0; column < slot.dim; ++column) {
    double old = shard.initialWeights[row * slot.dim + column];
    double kept = expected.kept * old;
    double step = expected.factor * gradient[column];
    // f16 and bf16 are rounded to the value below or above.
    double spacing = slot.element == ElementType::F32
                         ? 0
                         : std::ldexp(std::abs(kept - step), -7) + 1e-6;
    ASSERT_NEAR(shard.weights.get(row, column), kept - step,
                near(old) + near(kept) + near(step) + spacing)
        << "row " << row << " column " << column;
  }
}

/// The squared norm of the gradient, with L2 weight decay.
double normOf(const UpdatedSlot &shard, int64_t row,
              std::vector<float> gradient) {
  for (int64_t column = 0; column < shard.spec.dim; ++column)
    gradient[column] =
        withDecay(*shard.spec.optimizer, gradient[column],
                  shard.initialWeights[row * shard.spec.dim + column]);
  return squaredNorm(gradient);
}

void checkOnePhase(const SlotSpec &slot, const nsrt_slot_entry &entry) {
  UpdatedSlot shard(slot, Data::Messy);
  Segments segments(slot.dim, Data::Messy);
  runUpdate(entry, shard, segments);
  for (int64_t unique = 0; unique < segments.size(); ++unique) {
    std::vector<float> gradient = segments.sum(unique, slot);
    int64_t row = segments.rows[unique];
    ASSERT_NO_FATAL_FAILURE(
        checkRow(shard, row, gradient, normOf(shard, row, gradient)));
  }
  expectOthersUntouched(shard, segments);
}

void checkTwoPhases(const SlotSpec &slot, const nsrt_slot_entry &entry) {
  UpdatedSlot shard(slot, Data::Messy);
  Segments segments(slot.dim, Data::Messy);
  ReducedRows reduced(slot, segments);
  runReduce(entry, shard, segments, reduced);
  for (int64_t unique = 0; unique < segments.size(); ++unique) {
    std::vector<float> gradient = segments.sum(unique, slot);
    for (int64_t column = 0; column < slot.dim; ++column)
      ASSERT_EQ(bitsOf(reduced.rows.get(unique, column)),
                bitsOf(gradient[column]));
    double norm = normOf(shard, segments.rows[unique], gradient);
    ASSERT_NEAR(reduced.norms[unique], norm, near(norm));
    // The other column shard has the same gradients and weights.
    reduced.norms[unique] *= 2;
  }
  runApply(entry, shard, segments, reduced);
  for (int64_t unique = 0; unique < segments.size(); ++unique) {
    std::vector<float> gradient = segments.sum(unique, slot);
    int64_t row = segments.rows[unique];
    ASSERT_NO_FATAL_FAILURE(
        checkRow(shard, row, gradient, 2 * normOf(shard, row, gradient)));
  }
  expectOthersUntouched(shard, segments);
}

TEST(CounterKernels, EqualFormulas) {
  const KernelGrid &grid = getKernelGrid();
  int count = 0;
  for (size_t i = 0; i < grid.spec.slots.size(); ++i) {
    const SlotSpec &slot = grid.spec.slots[i];
    if (!slot.optimizer || !propertiesOf(slot.optimizer->kind).hasCounters)
      continue;
    SCOPED_TRACE("slot " + std::to_string(i) + ", " + describe(slot) +
                 " halflife " +
                 std::to_string(slot.optimizer->counterHalflife));
    ++count;
    ASSERT_NO_FATAL_FAILURE((slot.twoPhase ? checkTwoPhases : checkOnePhase)(
        slot, grid.program->slots[i]));
  }
  EXPECT_GT(count, 70);
}

} // namespace
