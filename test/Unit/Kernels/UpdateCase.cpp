//===- UpdateCase.cpp - A step of an update kernel under test -------------===//

#include "UpdateCase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace neuroshard {

Segments::Segments(int64_t dim, Data data) {
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

std::vector<float> Segments::sum(int64_t unique, const SlotSpec &slot) const {
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

static std::vector<float> initial(const SlotSpec &spec, Data data,
                                  uint32_t seed) {
  std::vector<float> values = makeValues(kTableRows * spec.dim, data, seed);
  for (float &value : values)
    value = roundTo(spec.element, value);
  return values;
}

static std::vector<float> nonNegative(const SlotSpec &spec, Data data,
                                      uint32_t seed) {
  std::vector<float> values = makeValues(kTableRows * spec.dim, data, seed);
  for (float &value : values)
    value = std::abs(value);
  return values;
}

/// Row `row` was last in step row % 5, in none if that is 0, and in some before
/// it.
static std::vector<float> lastStepsOfRows() {
  std::vector<float> steps;
  for (int64_t row = 0; row < kTableRows; ++row)
    steps.push_back(static_cast<float>(row % 5));
  return steps;
}

static std::vector<float> countsOfRows() {
  std::vector<float> counts;
  for (int64_t row = 0; row < kTableRows; ++row)
    counts.push_back(row % 5 == 0 ? 0
                                  : 1 + 0.75f * static_cast<float>(row % 7));
  return counts;
}

UpdatedSlot::UpdatedSlot(const SlotSpec &spec, Data data)
    : spec(spec), initialWeights(initial(spec, data, 21)),
      initialStates{nonNegative(spec, data, 22), nonNegative(spec, data, 23)},
      weights(spec.element, spec.dim, initialWeights),
      elementStates{{ElementType::F32, spec.dim, initialStates[0]},
                    {ElementType::F32, spec.dim, initialStates[1]}},
      initialRows{
          {initialStates[0].begin(), initialStates[0].begin() + kTableRows},
          lastStepsOfRows(),
          countsOfRows()},
      rowState(initialRows[0]), lastSteps(initialRows[1]),
      counts(initialRows[2]) {}

float *UpdatedSlot::state(int number) {
  OptimizerStates states = optimizerStates(*spec.optimizer);
  if (number < states.perElement)
    return static_cast<float *>(elementStates[number].data());
  GuardedArray<float> *ofRows[] = {&rowState, &lastSteps, &counts};
  return number < states.count() ? ofRows[number - states.perElement]->data()
                                 : nullptr;
}

/// Segments between guarded pages, and two ranges that kernels take them in.
struct GuardedSegments {
  GuardedArray<int64_t> rows, bounds, offsets;
  GuardedArray<float> sampleWeights, gradients;
  std::pair<int64_t, int64_t> ranges[2];

  explicit GuardedSegments(const Segments &segments)
      : rows(segments.rows), bounds(segments.bounds),
        offsets(segments.gradientOffsets),
        sampleWeights(segments.sampleWeights), gradients(segments.gradients),
        ranges{{0, 5}, {5, segments.size()}} {}
};

void runUpdate(const nsrt_slot_entry &entry, UpdatedSlot &shard,
               const Segments &segments) {
  GuardedSegments given(segments);
  for (auto [begin, end] : given.ranges)
    entry.update(shard.weights.data(), shard.state(0), shard.state(1),
                 shard.state(2), given.rows.data(), given.bounds.data(),
                 given.offsets.data(),
                 shard.spec.weighted ? given.sampleWeights.data() : nullptr,
                 given.gradients.data(), kStepSize, kKept, kSeed, kFirst,
                 kSecond, kStep, nullptr, begin, end);
}

ReducedRows::ReducedRows(const SlotSpec &slot, const Segments &segments)
    : rows(ElementType::F32, slot.dim,
           std::vector<float>(segments.size() * slot.dim)),
      norms(std::vector<float>(segments.size() *
                               normsPerRow(slot.optimizer->kind))) {}

void runReduce(const nsrt_slot_entry &entry, UpdatedSlot &shard,
               const Segments &segments, ReducedRows &reduced) {
  GuardedSegments given(segments);
  for (auto [begin, end] : given.ranges)
    entry.reduce(shard.weights.data(), shard.state(0), shard.state(1),
                 shard.state(2), given.rows.data(), given.bounds.data(),
                 given.offsets.data(),
                 shard.spec.weighted ? given.sampleWeights.data() : nullptr,
                 given.gradients.data(), kFirst, kSecond,
                 static_cast<float *>(reduced.rows.data()),
                 reduced.norms.data(), begin, end);
}

void runApply(const nsrt_slot_entry &entry, UpdatedSlot &shard,
              const Segments &segments, ReducedRows &reduced) {
  GuardedSegments given(segments);
  for (auto [begin, end] : given.ranges)
    entry.apply(shard.weights.data(), shard.state(0), shard.state(1),
                shard.state(2), given.rows.data(),
                static_cast<float *>(reduced.rows.data()), reduced.norms.data(),
                kStepSize, kKept, kSeed, kFirst, kSecond, kStep, begin, end);
}

void expectOthersUntouched(UpdatedSlot &shard, const Segments &segments) {
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
    ASSERT_EQ(bitsOf(shard.rowState[row]), bitsOf(shard.initialRows[0][row]));
    ASSERT_EQ(shard.lastSteps[row], shard.initialRows[1][row]);
    ASSERT_EQ(shard.counts[row], shard.initialRows[2][row]);
  }
  EXPECT_TRUE(shard.weights.isPaddingIntact());
  EXPECT_TRUE(shard.elementStates[0].isPaddingIntact());
  EXPECT_TRUE(shard.elementStates[1].isPaddingIntact());
}

float withDecay(const Optimizer &optimizer, float gradient, float weight) {
  if (weightDecayOf(optimizer) != WeightDecayMode::L2)
    return gradient;
  return gradient + static_cast<float>(optimizer.weightDecay) * weight;
}

float average(double beta, float before, float value) {
  return static_cast<float>(beta) * before +
         static_cast<float>(1 - beta) * value;
}

static uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6b;
  x = (x ^ (x >> 13)) * 0xc2b2ae35;
  return x ^ (x >> 16);
}

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

float ulpOf(float value) {
  return std::nextafter(value, std::numeric_limits<float>::infinity()) - value;
}

double squaredNorm(const std::vector<float> &gradient) {
  double norm = 0;
  for (float g : gradient)
    norm += static_cast<double>(g) * g;
  return norm;
}

int64_t getTableDim(const SlotSpec &slot) {
  return slot.tableDim != 0 ? slot.tableDim : slot.dim;
}

} // namespace neuroshard
