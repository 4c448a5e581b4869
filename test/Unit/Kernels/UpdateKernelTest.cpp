//===- UpdateKernelTest.cpp - Optimizer kernels and scalar loops ----------===//
//
// Optimizer steps equal a scalar loop bit by bit (SGD, momentum, Adagrad, Adam,
// AdamW, FTRL, with and without both kinds of weight decay, f16 and bf16
// rounded once); row-wise norms are exact on integers and within 4 ulp of their
// sum otherwise, and weights and first moments equal bit by bit what the
// formula gives from the kernel's own row state. Other rows, padding and memory
// past the arrays stay untouched. TrustKernelTest.cpp has the optimizers with
// trust ratios, CounterKernelTest.cpp the one with counters.

#include "UpdateCase.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace neuroshard;

namespace {

/// One element after one step.
struct ExpectedTable {
  float weight;
  float states[2];
};

float keptWeight(const Optimizer &optimizer, float weight) {
  bool decays = weightDecayOf(optimizer) == WeightDecayMode::Decoupled;
  return decays ? kKept * weight : weight;
}

ExpectedTable stepElement(const Optimizer &optimizer, float weight,
                          float state0, float state1, float gradient) {
  float g = withDecay(optimizer, gradient, weight);
  weight = keptWeight(optimizer, weight);
  float eps = optimizer.eps;
  switch (optimizer.kind) {
  case OptimizerKind::SGD:
    return {weight - kStepSize * g, {state0, state1}};
  case OptimizerKind::Adagrad: {
    float sum = state0 + g * g;
    return {weight - kStepSize * (g / (std::sqrt(sum) + eps)), {sum, state1}};
  }
  case OptimizerKind::Adam:
  case OptimizerKind::AdamW: {
    float m = average(optimizer.beta1, state0, g);
    float v = average(optimizer.beta2, state1, g * g);
    return {weight - kStepSize * (m / (std::sqrt(v) + eps)), {m, v}};
  }
  case OptimizerKind::Momentum: {
    float buffer = static_cast<float>(optimizer.beta1) * state0 + g;
    return {weight - kStepSize * buffer, {buffer, state1}};
  }
  case OptimizerKind::FTRL: {
    auto l1 = static_cast<float>(optimizer.l1Penalty);
    auto l2 = static_cast<float>(optimizer.l2Penalty);
    float sum = state0 + g * g, root = std::sqrt(sum);
    float sigma = (root - std::sqrt(state0)) / kStepSize;
    float linear = state1 + g - sigma * weight;
    float next = 0;
    if (std::abs(linear) > l1)
      next = (std::copysign(l1, linear) - linear) /
             ((root + eps) / kStepSize + l2);
    return {next, {sum, linear}};
  }
  case OptimizerKind::RowWiseAdagrad:
  case OptimizerKind::PartialRowWiseAdam:
  case OptimizerKind::RowWiseRMSprop:
  case OptimizerKind::LARS:
  case OptimizerKind::LAMB:
  case OptimizerKind::PartialRowWiseLAMB:
  case OptimizerKind::RowWiseAdagradWithCounter:
    break;
  }
  ADD_FAILURE() << "not element-wise";
  return {};
}

class UpdateKernels : public testing::TestWithParam<Data> {
protected:
  /// Runs `check` on every slot that `select` accepts.
  template <typename Select, typename Check>
  void forEachSlot(Select select, Check check) {
    int count = 0;
    for (size_t i = 0; i < grid.spec.slots.size(); ++i) {
      const SlotSpec &slot = grid.spec.slots[i];
      if (!slot.optimizer || !select(slot))
        continue;
      SCOPED_TRACE("slot " + std::to_string(i) + ", " + describe(slot));
      check(slot, grid.program->slots[i]);
      ++count;
      if (HasFatalFailure())
        return;
    }
    EXPECT_GT(count, 20);
  }

  const KernelGrid &grid = getKernelGrid();
};

void checkElementwise(const SlotSpec &slot, const nsrt_slot_entry &entry,
                      Data data) {
  UpdatedSlot shard(slot, data);
  Segments segments(slot.dim, data);
  runUpdate(entry, shard, segments);
  for (int64_t unique = 0; unique < segments.size(); ++unique) {
    int64_t row = segments.rows[unique];
    std::vector<float> gradient = segments.sum(unique, slot);
    for (int64_t column = 0; column < slot.dim; ++column) {
      int64_t at = row * slot.dim + column;
      ExpectedTable expected = stepElement(
          *slot.optimizer, shard.initialWeights[at], shard.initialStates[0][at],
          shard.initialStates[1][at], gradient[column]);
      ASSERT_EQ(bitsOf(shard.weights.get(row, column)),
                bitsOf(stored(slot, expected.weight,
                              withDecay(*slot.optimizer, gradient[column],
                                        shard.initialWeights[at]))))
          << "row " << row << " column " << column;
      for (int number : {0, 1})
        ASSERT_EQ(bitsOf(shard.elementStates[number].get(row, column)),
                  bitsOf(expected.states[number]))
            << "state " << number << " row " << row << " column " << column;
    }
  }
  expectOthersUntouched(shard, segments);
}

/// Checks one row after a row-wise step: its state against the norm in double
/// precision, its weights bit by bit against the state.
void checkRowwiseRow(UpdatedSlot &shard, int64_t row,
                     const std::vector<float> &gradient, double norm,
                     Data data) {
  const SlotSpec &slot = shard.spec;
  const Optimizer &optimizer = *slot.optimizer;
  bool averages = optimizer.kind != OptimizerKind::RowWiseAdagrad;
  bool hasMoment = optimizer.kind == OptimizerKind::PartialRowWiseAdam;
  float before = shard.initialStates[0][row];
  double mean = norm / getTableDim(slot);
  double expected =
      averages ? optimizer.beta2 * before + (1 - optimizer.beta2) * mean
               : before + mean;
  float after = shard.rowState[row];
  if (data == Data::Integers) {
    float exact =
        static_cast<float>(norm) / static_cast<float>(getTableDim(slot));
    ASSERT_EQ(after, averages ? average(optimizer.beta2, before, exact)
                              : before + exact);
  } else {
    ASSERT_NEAR(after, expected, 4 * ulpOf(expected)) << "row " << row;
  }

  float factor =
      kStepSize / (std::sqrt(after) + static_cast<float>(optimizer.eps));
  for (int64_t column = 0; column < slot.dim; ++column) {
    int64_t at = row * slot.dim + column;
    float direction = gradient[column];
    if (hasMoment) {
      direction =
          average(optimizer.beta1, shard.initialStates[0][at], direction);
      ASSERT_EQ(bitsOf(shard.elementStates[0].get(row, column)),
                bitsOf(direction))
          << "row " << row << " column " << column;
    }
    float weight = keptWeight(optimizer, shard.initialWeights[at]);
    ASSERT_EQ(
        bitsOf(shard.weights.get(row, column)),
        bitsOf(stored(slot, weight - factor * direction, gradient[column])))
        << "row " << row << " column " << column;
  }
}

/// The summed gradient of a row, with L2 weight decay.
std::vector<float> decayedGradient(const UpdatedSlot &shard, int64_t row,
                                   std::vector<float> gradient) {
  const SlotSpec &slot = shard.spec;
  for (int64_t column = 0; column < slot.dim; ++column)
    gradient[column] = withDecay(*slot.optimizer, gradient[column],
                                 shard.initialWeights[row * slot.dim + column]);
  return gradient;
}

void checkRowwise(const SlotSpec &slot, const nsrt_slot_entry &entry,
                  Data data) {
  UpdatedSlot shard(slot, data);
  Segments segments(slot.dim, data);
  runUpdate(entry, shard, segments);
  for (int64_t unique = 0; unique < segments.size(); ++unique) {
    int64_t row = segments.rows[unique];
    std::vector<float> gradient =
        decayedGradient(shard, row, segments.sum(unique, slot));
    ASSERT_NO_FATAL_FAILURE(
        checkRowwiseRow(shard, row, gradient, squaredNorm(gradient), data));
  }
  expectOthersUntouched(shard, segments);
}

void checkTwoPhase(const SlotSpec &slot, const nsrt_slot_entry &entry,
                   Data data) {
  UpdatedSlot shard(slot, data);
  Segments segments(slot.dim, data);
  ReducedRows reduced(slot, segments);
  runReduce(entry, shard, segments, reduced);
  std::vector<std::vector<float>> sums;
  for (int64_t unique = 0; unique < segments.size(); ++unique) {
    sums.push_back(decayedGradient(shard, segments.rows[unique],
                                   segments.sum(unique, slot)));
    for (int64_t column = 0; column < slot.dim; ++column)
      ASSERT_EQ(bitsOf(reduced.rows.get(unique, column)),
                bitsOf(sums.back()[column]));
    double norm = squaredNorm(sums.back());
    double tolerance = data == Data::Integers ? 0 : 4 * ulpOf(norm);
    ASSERT_NEAR(reduced.norms[unique], norm, tolerance)
        << "unique row " << unique;
    // The other column shard has the same gradients.
    reduced.norms[unique] *= 2;
  }
  EXPECT_TRUE(reduced.rows.isPaddingIntact());

  runApply(entry, shard, segments, reduced);
  for (int64_t unique = 0; unique < segments.size(); ++unique)
    ASSERT_NO_FATAL_FAILURE(
        checkRowwiseRow(shard, segments.rows[unique], sums[unique],
                        2 * squaredNorm(sums[unique]), data));
  expectOthersUntouched(shard, segments);
}

bool hasTrustRatio(const SlotSpec &slot) {
  return propertiesOf(slot.optimizer->kind).hasTrustRatio;
}

bool isElementwise(const SlotSpec &slot) {
  return normsPerRow(slot.optimizer->kind) == 0;
}

bool isRowwise(const SlotSpec &slot) {
  return !isElementwise(slot) && !hasTrustRatio(slot) &&
         !propertiesOf(slot.optimizer->kind).hasCounters;
}

TEST_P(UpdateKernels, ElementwiseEqualScalarLoop) {
  forEachSlot(isElementwise,
              [](const SlotSpec &slot, const nsrt_slot_entry &entry) {
                checkElementwise(slot, entry, GetParam());
              });
}

TEST_P(UpdateKernels, RowwiseInOnePhase) {
  forEachSlot(
      [](const SlotSpec &slot) { return isRowwise(slot) && !slot.twoPhase; },
      [](const SlotSpec &slot, const nsrt_slot_entry &entry) {
        checkRowwise(slot, entry, GetParam());
      });
}

TEST_P(UpdateKernels, RowwiseInTwoPhases) {
  forEachSlot(
      [](const SlotSpec &slot) { return isRowwise(slot) && slot.twoPhase; },
      [](const SlotSpec &slot, const nsrt_slot_entry &entry) {
        checkTwoPhase(slot, entry, GetParam());
      });
}

INSTANTIATE_TEST_SUITE_P(Values, UpdateKernels,
                         testing::Values(Data::Messy, Data::Integers),
                         [](const auto &info) {
                           return info.param == Data::Messy ? "Messy"
                                                            : "Integers";
                         });

} // namespace
