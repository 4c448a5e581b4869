//===- TrustKernelTest.cpp - Kernels with trust ratios and scalar loops ---===//
//
// The first phase of LARS, LAMB and partial row-wise LAMB: directions and
// moments equal a scalar loop bit by bit, sums over columns are exact on
// integers and within 4 ulp of the sum of their terms otherwise, and one more
// for each 256 columns. The second phase equals, bit by bit, what the formulas
// give from such sums. An update in one phase gives the bits of both. Norms of
// 0 give no step and no NaN.

#include "UpdateCase.h"

#include "neuroshard/Model/RowLayout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace neuroshard;

namespace {

bool isLars(const Optimizer &optimizer) {
  return optimizer.kind == OptimizerKind::LARS;
}

bool isPartial(const Optimizer &optimizer) {
  return optimizer.kind == OptimizerKind::PartialRowWiseLAMB;
}

float plusDecay(const Optimizer &optimizer, float direction, float weight) {
  if (optimizer.weightDecay == 0)
    return direction;
  return direction + static_cast<float>(optimizer.weightDecay) * weight;
}

/// One row in the first phase.
struct FirstPhase {
  std::vector<float> weights, gradient, direction;
  std::vector<float> moments[2]; ///< after their step.

  FirstPhase(const UpdatedSlot &shard, const Segments &segments, int64_t unique)
      : gradient(segments.sum(unique, shard.spec)) {
    const Optimizer &optimizer = *shard.spec.optimizer;
    auto eps = static_cast<float>(optimizer.eps);
    for (int64_t column = 0; column < shard.spec.dim; ++column) {
      int64_t at = segments.rows[unique] * shard.spec.dim + column;
      float w = shard.initialWeights[at], g = gradient[column];
      weights.push_back(w);
      if (isLars(optimizer)) {
        direction.push_back(plusDecay(optimizer, g, w));
        continue;
      }
      float m = average(optimizer.beta1, shard.initialStates[0][at], g);
      float v = average(optimizer.beta2, shard.initialStates[1][at], g * g);
      moments[0].push_back(m);
      moments[1].push_back(v);
      float adapted = (kFirst * m) / (kSecond * std::sqrt(v) + eps);
      direction.push_back(
          isPartial(optimizer) ? m : plusDecay(optimizer, adapted, w));
    }
  }

  /// By number, the sums that the kernel gives.
  std::vector<double> sums(const Optimizer &optimizer) const {
    auto product = [](const std::vector<float> &a,
                      const std::vector<float> &b) {
      double sum = 0;
      for (size_t i = 0; i < a.size(); ++i)
        sum += static_cast<double>(a[i]) * b[i];
      return sum;
    };
    double ofWeights = product(weights, weights);
    if (isLars(optimizer))
      return {product(gradient, gradient), ofWeights};
    if (!isPartial(optimizer))
      return {product(direction, direction), ofWeights};
    return {product(gradient, gradient), product(direction, direction),
            product(direction, weights), ofWeights};
  }

  /// Bounds of what their terms have in f32.
  double size() const {
    return squaredNorm(gradient) + squaredNorm(direction) +
           squaredNorm(weights);
  }
};

float ratioOf(float top, float bottom) {
  return bottom == 0 ? 0 : top / bottom;
}

/// The second phase of a row from its sums, as stored.
void checkSecondPhase(UpdatedSlot &shard, int64_t row, const FirstPhase &first,
                      const float *sums) {
  const SlotSpec &slot = shard.spec;
  const Optimizer &optimizer = *slot.optimizer;
  auto decay = static_cast<float>(optimizer.weightDecay);
  float factor, ofMoment = 1;
  if (isLars(optimizer)) {
    float weights = std::sqrt(sums[1]), bottom = std::sqrt(sums[0]);
    if (decay != 0)
      bottom = bottom + decay * weights;
    factor = ratioOf((kStepSize * static_cast<float>(optimizer.eta)) * weights,
                     bottom);
  } else if (!isPartial(optimizer)) {
    factor = kStepSize * ratioOf(std::sqrt(sums[1]), std::sqrt(sums[0]));
  } else {
    float mean = sums[0] / static_cast<float>(getTableDim(slot));
    float v = average(optimizer.beta2, shard.initialStates[0][row], mean);
    ASSERT_EQ(bitsOf(shard.rowState[row]), bitsOf(v)) << "row " << row;
    ofMoment =
        kFirst / (kSecond * std::sqrt(v) + static_cast<float>(optimizer.eps));
    float norm = ofMoment * (ofMoment * sums[1]);
    if (decay != 0)
      norm = std::max(ofMoment * (ofMoment * sums[1] + (2 * decay) * sums[2]) +
                          (decay * decay) * sums[3],
                      0.0f);
    factor = kStepSize * ratioOf(std::sqrt(sums[3]), std::sqrt(norm));
  }
  for (int64_t column = 0; column < slot.dim; ++column) {
    float w = first.weights[column], direction = first.direction[column];
    if (isPartial(optimizer))
      direction = plusDecay(optimizer, ofMoment * direction, w);
    float step = factor * direction;
    if (isLars(optimizer)) {
      step = static_cast<float>(optimizer.beta1) *
                 shard.initialStates[0][row * slot.dim + column] +
             step;
      ASSERT_EQ(bitsOf(shard.elementStates[0].get(row, column)), bitsOf(step));
    }
    ASSERT_EQ(bitsOf(shard.weights.get(row, column)),
              bitsOf(stored(slot, w - step, direction)))
        << "row " << row << " column " << column;
  }
}

class TrustKernels : public testing::TestWithParam<Data> {
protected:
  /// Calls check(slot, entry of one phase, entry of two phases).
  template <typename Check> void forEachSlot(Check check) {
    int count = 0;
    for (size_t i = 1; i < grid.spec.slots.size(); ++i) {
      const SlotSpec &slot = grid.spec.slots[i];
      if (!slot.optimizer || !slot.twoPhase ||
          !propertiesOf(slot.optimizer->kind).hasTrustRatio)
        continue;
      SCOPED_TRACE("slot " + std::to_string(i) + ", " + describe(slot));
      check(slot, grid.program->slots[i - 1], grid.program->slots[i]);
      ++count;
      if (HasFatalFailure())
        return;
    }
    EXPECT_GT(count, 30);
  }

  const KernelGrid &grid = getKernelGrid();
};

void checkFirstPhase(UpdatedSlot &shard, const Segments &segments,
                     ReducedRows &reduced, int64_t unique, Data data) {
  const SlotSpec &slot = shard.spec;
  const Optimizer &optimizer = *slot.optimizer;
  FirstPhase first(shard, segments, unique);
  int64_t row = segments.rows[unique];
  int elementStates = optimizerStates(optimizer).perElement;
  for (int64_t column = 0; column < slot.dim; ++column) {
    ASSERT_EQ(bitsOf(reduced.rows.get(unique, column)),
              bitsOf(first.direction[column]))
        << "row " << row << " column " << column;
    for (int state = 0; !isLars(optimizer) && state < elementStates; ++state)
      ASSERT_EQ(bitsOf(shard.elementStates[state].get(row, column)),
                bitsOf(first.moments[state][column]))
          << "state " << state << " row " << row << " column " << column;
  }
  std::vector<double> sums = first.sums(optimizer);
  bool isExact =
      data == Data::Integers && isLars(optimizer) && optimizer.weightDecay == 0;
  for (size_t i = 0; i < sums.size(); ++i)
    ASSERT_NEAR(reduced.norms[unique * sums.size() + i], sums[i],
                isExact ? 0
                        : (4 + slot.dim / 256) *
                              ulpOf(static_cast<float>(first.size())))
        << "sum " << i << " of row " << row;
}

TEST_P(TrustKernels, TwoPhasesEqualScalarLoop) {
  forEachSlot([](const SlotSpec &slot, const nsrt_slot_entry &,
                 const nsrt_slot_entry &entry) {
    UpdatedSlot shard(slot, GetParam());
    Segments segments(slot.dim, GetParam());
    ReducedRows reduced(slot, segments);
    runReduce(entry, shard, segments, reduced);
    int64_t perRow = normsPerRow(slot.optimizer->kind);
    for (int64_t unique = 0; unique < segments.size(); ++unique)
      ASSERT_NO_FATAL_FAILURE(
          checkFirstPhase(shard, segments, reduced, unique, GetParam()));
    EXPECT_TRUE(reduced.rows.isPaddingIntact());
    // The other column shard has the same values.
    for (int64_t i = 0; i < segments.size() * perRow; ++i)
      reduced.norms[i] *= 2;
    runApply(entry, shard, segments, reduced);
    for (int64_t unique = 0; unique < segments.size(); ++unique)
      ASSERT_NO_FATAL_FAILURE(checkSecondPhase(
          shard, segments.rows[unique], FirstPhase(shard, segments, unique),
          &reduced.norms[unique * perRow]));
    expectOthersUntouched(shard, segments);
  });
}

void expectSame(UpdatedSlot &one, UpdatedSlot &other) {
  for (int64_t row = 0; row < kTableRows; ++row) {
    ASSERT_EQ(bitsOf(one.rowState[row]), bitsOf(other.rowState[row]));
    for (int64_t column = 0; column < one.spec.dim; ++column) {
      ASSERT_EQ(bitsOf(one.weights.get(row, column)),
                bitsOf(other.weights.get(row, column)))
          << "row " << row << " column " << column;
      for (int state : {0, 1})
        ASSERT_EQ(bitsOf(one.elementStates[state].get(row, column)),
                  bitsOf(other.elementStates[state].get(row, column)));
    }
  }
}

TEST_P(TrustKernels, OnePhaseGivesTheBitsOfTwo) {
  forEachSlot([](const SlotSpec &slot, const nsrt_slot_entry &once,
                 const nsrt_slot_entry &twice) {
    UpdatedSlot one(slot, GetParam()), other(slot, GetParam());
    Segments segments(slot.dim, GetParam());
    runUpdate(once, one, segments);
    ReducedRows reduced(slot, segments);
    runReduce(twice, other, segments, reduced);
    runApply(twice, other, segments, reduced);
    ASSERT_NO_FATAL_FAILURE(expectSame(one, other));
  });
}

void fillWithZeros(StoredRows &rows, const SlotSpec &slot, ElementType type) {
  std::memset(rows.data(), 0, kTableRows * paddedRowBytes(slot.dim, type));
}

/// Of a row whose weights or whose gradients, moments and decay are 0.
TEST_P(TrustKernels, NormsOfZeroGiveNoStep) {
  forEachSlot([](const SlotSpec &slot, const nsrt_slot_entry &entry,
                 const nsrt_slot_entry &) {
    for (bool areWeights : {false, true}) {
      if (!areWeights && slot.optimizer->weightDecay != 0)
        continue;
      Segments segments(slot.dim, GetParam());
      UpdatedSlot shard(slot, GetParam());
      for (StoredRows &state : shard.elementStates)
        fillWithZeros(state, slot, ElementType::F32);
      std::fill_n(shard.rowState.data(), kTableRows, 0.0f);
      if (areWeights) {
        fillWithZeros(shard.weights, slot, slot.element);
        std::ranges::fill(shard.initialWeights, 0.0f);
      } else {
        std::ranges::fill(segments.gradients, 0.0f);
      }
      runUpdate(entry, shard, segments);
      for (int64_t row = 0; row < kTableRows; ++row)
        for (int64_t column = 0; column < slot.dim; ++column)
          ASSERT_EQ(shard.weights.get(row, column),
                    shard.initialWeights[row * slot.dim + column])
              << "row " << row << " column " << column;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Values, TrustKernels,
                         testing::Values(Data::Messy, Data::Integers),
                         [](const auto &info) {
                           return info.param == Data::Messy ? "Messy"
                                                            : "Integers";
                         });

} // namespace
