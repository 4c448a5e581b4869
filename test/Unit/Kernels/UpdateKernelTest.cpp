//===- UpdateKernelTest.cpp - Optimizer kernels and scalar loops ----------===//
//
// Optimizer steps equal a scalar loop bit by bit (SGD, momentum, Adagrad, Adam,
// AdamW, FTRL, with and without both kinds of weight decay, f16 and bf16
// rounded once); row-wise norms are exact on integers and within 4 ulp of their
// sum otherwise, and weights and first moments equal bit by bit what the
// formula gives from the kernel's own row state. Other rows, padding and memory
// past the arrays stay untouched.

#include "Elements.h"
#include "GuardedArray.h"
#include "KernelGrid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

using namespace neuroshard;

namespace {

constexpr int64_t kTableRows = 61;
constexpr float kStepSize = 0.0371f;
/// Of the weights, under decoupled weight decay.
constexpr float kKept = 0.9871f;
/// Of stochastic rounding.
constexpr uint32_t kSeed = 0x9e3779b9;

/// Unique rows, ascending with gaps, and segments of gradients for them:
/// lengths below and above the prefetch distance.
struct Segments {
  std::vector<int64_t> rows, bounds{0}, gradientOffsets;
  std::vector<float> sampleWeights, gradients;

  Segments(int64_t dim, Data data) {
    for (int64_t row = 2; row < kTableRows; row += 3) {
      rows.push_back(row);
      bounds.push_back(bounds.back() + (row == 5 ? 30 : 1 + row % 4));
    }
    constexpr int64_t kGradients = 17;
    for (int64_t k = 0; k < bounds.back(); ++k)
      gradientOffsets.push_back((k * 5 % kGradients) * dim);
    sampleWeights = makeValues(gradientOffsets.size(), data, 11);
    gradients = makeValues(kGradients * dim, data, 12);
  }
  int64_t size() const { return rows.size(); }

  /// The summed gradient of unique row `unique`, as the slot clips it.
  std::vector<float> sum(int64_t unique, const SlotSpec &slot) const {
    int64_t dim = slot.dim;
    std::vector<float> total(dim, 0.0f);
    for (int64_t k = bounds[unique]; k < bounds[unique + 1]; ++k)
      for (int64_t column = 0; column < dim; ++column) {
        float term = gradients[gradientOffsets[k] + column];
        total[column] += slot.weighted ? sampleWeights[k] * term : term;
      }
    auto bound = static_cast<float>(slot.optimizer->maxGradient);
    if (bound != 0)
      for (float &value : total)
        value = std::clamp(value, -bound, bound);
    return total;
  }
};

/// A slot's memory, and what it was before the step.
struct Shard {
  const SlotSpec &spec;
  std::vector<float> initialWeights, initialStates[2];
  StoredRows weights;
  StoredRows elementStates[2];
  GuardedArray<float> rowState;

  Shard(const SlotSpec &spec, Data data)
      : spec(spec), initialWeights(initial(data, 21)),
        initialStates{nonNegative(data, 22), nonNegative(data, 23)},
        weights(spec.element, spec.dim, initialWeights),
        elementStates{{ElementType::F32, spec.dim, initialStates[0]},
                      {ElementType::F32, spec.dim, initialStates[1]}},
        rowState(std::vector<float>(initialStates[0].begin(),
                                    initialStates[0].begin() + kTableRows)) {}

  float *state(int number) {
    int32_t elements = optimizerStates(spec.optimizer->kind).perElement;
    if (number < elements)
      return static_cast<float *>(elementStates[number].data());
    bool isRowState =
        number == elements && optimizerStates(spec.optimizer->kind).perRow > 0;
    return isRowState ? rowState.data() : nullptr;
  }

private:
  std::vector<float> initial(Data data, uint32_t seed) const {
    std::vector<float> values = makeValues(kTableRows * spec.dim, data, seed);
    for (float &value : values)
      value = roundTo(spec.element, value);
    return values;
  }
  std::vector<float> nonNegative(Data data, uint32_t seed) const {
    std::vector<float> values = makeValues(kTableRows * spec.dim, data, seed);
    for (float &value : values)
      value = std::abs(value);
    return values;
  }
};

/// One element after one step.
struct ExpectedTable {
  float weight;
  float states[2];
};

float withDecay(const Optimizer &optimizer, float gradient, float weight) {
  if (weightDecayOf(optimizer) != WeightDecayMode::L2)
    return gradient;
  return gradient + static_cast<float>(optimizer.weightDecay) * weight;
}

float keptWeight(const Optimizer &optimizer, float weight) {
  bool decays = weightDecayOf(optimizer) == WeightDecayMode::Decoupled;
  return decays ? kKept * weight : weight;
}

float average(double beta, float before, float value) {
  return static_cast<float>(beta) * before +
         static_cast<float>(1 - beta) * value;
}

uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6b;
  x = (x ^ (x >> 13)) * 0xc2b2ae35;
  return x ^ (x >> 16);
}

/// As the slot stores it. Under stochastic rounding the value below or above,
/// by as many random bits as the type lacks.
float stored(const SlotSpec &slot, float weight, float gradient) {
  if (!slot.optimizer->stochasticRounding)
    return roundTo(slot.element, weight);
  uint32_t random = mix(bitsOf(weight) ^ mix(bitsOf(gradient) ^ kSeed));
  if (slot.element == ElementType::F16 && std::abs(weight) < 0x1p-14f) {
    float share = static_cast<float>(random >> 8) - 0x1p23f;
    return roundTo(slot.element, weight + share * 0x1p-48f);
  }
  uint32_t lost = slot.element == ElementType::BF16 ? 0xffff : 0x1fff;
  return roundTo(slot.element, std::bit_cast<float>(
                                   (bitsOf(weight) + (random & lost)) & ~lost));
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
    break;
  }
  ADD_FAILURE() << "not element-wise";
  return {};
}

int64_t getTableDim(const SlotSpec &slot) {
  return slot.tableDim != 0 ? slot.tableDim : slot.dim;
}

float ulpOf(float value) {
  return std::nextafter(value, std::numeric_limits<float>::infinity()) - value;
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

void runUpdate(const nsrt_slot_entry &entry, Shard &shard,
               const Segments &segments) {
  GuardedArray<int64_t> rows(segments.rows), bounds(segments.bounds),
      offsets(segments.gradientOffsets);
  GuardedArray<float> sampleWeights(segments.sampleWeights),
      gradients(segments.gradients);
  for (auto [begin, end] :
       {std::pair<int64_t, int64_t>{0, 5}, {5, segments.size()}})
    entry.update(shard.weights.data(), shard.state(0), shard.state(1),
                 rows.data(), bounds.data(), offsets.data(),
                 shard.spec.weighted ? sampleWeights.data() : nullptr,
                 gradients.data(), kStepSize, kKept, kSeed, begin, end);
}

/// Rows that are not in the step keep their weights, and padding its value.
void expectOthersUntouched(Shard &shard, const Segments &segments) {
  for (int64_t row = 0; row < kTableRows; ++row) {
    if (std::count(segments.rows.begin(), segments.rows.end(), row))
      continue;
    for (int64_t column = 0; column < shard.spec.dim; ++column)
      ASSERT_EQ(bitsOf(shard.weights.get(row, column)),
                bitsOf(shard.initialWeights[row * shard.spec.dim + column]))
          << "row " << row;
    for (int number : {0, 1})
      for (int64_t column = 0; column < shard.spec.dim; ++column)
        ASSERT_EQ(
            bitsOf(shard.elementStates[number].get(row, column)),
            bitsOf(shard.initialStates[number][row * shard.spec.dim + column]))
            << "state " << number << " row " << row;
    ASSERT_EQ(bitsOf(shard.rowState[row]), bitsOf(shard.initialStates[0][row]));
  }
  EXPECT_TRUE(shard.weights.isPaddingIntact());
  EXPECT_TRUE(shard.elementStates[0].isPaddingIntact());
  EXPECT_TRUE(shard.elementStates[1].isPaddingIntact());
}

void checkElementwise(const SlotSpec &slot, const nsrt_slot_entry &entry,
                      Data data) {
  Shard shard(slot, data);
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
void checkRowwiseRow(Shard &shard, int64_t row,
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

double squaredNorm(const std::vector<float> &gradient) {
  double norm = 0;
  for (float g : gradient)
    norm += static_cast<double>(g) * g;
  return norm;
}

void checkRowwise(const SlotSpec &slot, const nsrt_slot_entry &entry,
                  Data data) {
  Shard shard(slot, data);
  Segments segments(slot.dim, data);
  runUpdate(entry, shard, segments);
  for (int64_t unique = 0; unique < segments.size(); ++unique) {
    int64_t row = segments.rows[unique];
    std::vector<float> gradient = segments.sum(unique, slot);
    for (int64_t column = 0; column < slot.dim; ++column)
      gradient[column] =
          withDecay(*slot.optimizer, gradient[column],
                    shard.initialWeights[row * slot.dim + column]);
    ASSERT_NO_FATAL_FAILURE(
        checkRowwiseRow(shard, row, gradient, squaredNorm(gradient), data));
  }
  expectOthersUntouched(shard, segments);
}

void checkTwoPhase(const SlotSpec &slot, const nsrt_slot_entry &entry,
                   Data data) {
  Shard shard(slot, data);
  Segments segments(slot.dim, data);
  GuardedArray<int64_t> rows(segments.rows), bounds(segments.bounds),
      offsets(segments.gradientOffsets);
  GuardedArray<float> sampleWeights(segments.sampleWeights),
      gradients(segments.gradients);
  StoredRows reduced(ElementType::F32, slot.dim,
                     std::vector<float>(segments.size() * slot.dim));
  GuardedArray<float> norms(std::vector<float>(segments.size()));
  auto *reducedData = static_cast<float *>(reduced.data());

  for (auto [begin, end] :
       {std::pair<int64_t, int64_t>{0, 5}, {5, segments.size()}})
    entry.reduce(bounds.data(), offsets.data(),
                 slot.weighted ? sampleWeights.data() : nullptr,
                 gradients.data(), reducedData, norms.data(), begin, end);
  std::vector<std::vector<float>> sums;
  for (int64_t unique = 0; unique < segments.size(); ++unique) {
    sums.push_back(segments.sum(unique, slot));
    for (int64_t column = 0; column < slot.dim; ++column)
      ASSERT_EQ(bitsOf(reduced.get(unique, column)),
                bitsOf(sums.back()[column]));
    double norm = squaredNorm(sums.back());
    double tolerance = data == Data::Integers ? 0 : 4 * ulpOf(norm);
    ASSERT_NEAR(norms[unique], norm, tolerance) << "unique row " << unique;
    // The other column shard has the same gradients.
    norms[unique] *= 2;
  }
  EXPECT_TRUE(reduced.isPaddingIntact());

  for (auto [begin, end] :
       {std::pair<int64_t, int64_t>{0, 5}, {5, segments.size()}})
    entry.apply(shard.weights.data(), shard.state(0), shard.state(1),
                rows.data(), reducedData, norms.data(), kStepSize, kKept, kSeed,
                begin, end);
  for (int64_t unique = 0; unique < segments.size(); ++unique)
    ASSERT_NO_FATAL_FAILURE(
        checkRowwiseRow(shard, segments.rows[unique], sums[unique],
                        2 * squaredNorm(sums[unique]), data));
  expectOthersUntouched(shard, segments);
}

bool isRowwise(const SlotSpec &slot) {
  return optimizerStates(slot.optimizer->kind).perRow > 0;
}

TEST_P(UpdateKernels, ElementwiseEqualScalarLoop) {
  forEachSlot([](const SlotSpec &slot) { return !isRowwise(slot); },
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
  forEachSlot([](const SlotSpec &slot) { return slot.twoPhase; },
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
