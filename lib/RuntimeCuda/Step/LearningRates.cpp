//===- LearningRates.cpp - Learning rates in device memory ----------------===//
//
// Tables of equal step sizes are side by side unless they have learning rates
// of their own, so that one fill sets those of all.
//
//===----------------------------------------------------------------------===//

#include "LearningRates.h"
#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <algorithm>
#include <bit>
#include <tuple>

using namespace neuroshard::runtime;

namespace neuroshard::cuda {
namespace {

/// Equal for optimizers whose step sizes are equal if their rates are.
std::tuple<bool, double, double> stepRule(const Optimizer &optimizer) {
  if (optimizer.kind != OptimizerKind::Adam)
    return {};
  return {true, optimizer.beta1, optimizer.beta2};
}

} // namespace

LearningRates::LearningRates(const Gpu &gpu, const Binding &binding)
    : gpu(gpu) {
  std::vector<const TableSpec *> tables;
  for (size_t slot = 0; slot < binding.numSlots(); ++slot)
    if (const TableSpec *table = &binding.tableOf(slot);
        table->trained() && std::ranges::find(tables, table) == tables.end())
      tables.push_back(table);
  std::ranges::stable_sort(tables, {}, [](const TableSpec *table) {
    return stepRule(*table->optimizer);
  });
  for (const TableSpec *table : tables)
    optimizers.push_back(*table->optimizer);
  for (size_t slot = 0; slot < binding.numSlots(); ++slot) {
    auto table = std::ranges::find(tables, &binding.tableOf(slot));
    isTrained.push_back(table != tables.end());
    wordOfSlot.push_back(static_cast<size_t>(table - tables.begin()));
  }
  // Slots that are not trained have no step; they share the last word.
  optimizers.emplace_back();
  memory =
      DeviceBlock(gpu, static_cast<int64_t>(optimizers.size() * sizeof(float)),
                  "the learning rates");
}

void LearningRates::set(float learningRate, int64_t step, CUstream stream) {
  if (!std::isfinite(learningRate))
    fail("the learning rate must be finite, found ", learningRate);
  std::vector<float> sizes;
  for (const Optimizer &optimizer : optimizers)
    sizes.push_back(stepSize(optimizer, learningRate, step));
  write(sizes, stream);
}

void LearningRates::setSizes(std::span<const float> ofSlot, CUstream stream) {
  std::vector<float> sizes(optimizers.size());
  sizes.back() = ofSlot.empty() ? 0 : ofSlot.back(); // nothing reads it
  for (size_t slot = 0; slot < ofSlot.size(); ++slot)
    if (isTrained[slot])
      sizes[wordOfSlot[slot]] = ofSlot[slot];
  write(sizes, stream);
}

void LearningRates::write(std::span<const float> sizes, CUstream stream) {
  for (size_t begin = 0, end = 0; begin < sizes.size(); begin = end) {
    auto bits = std::bit_cast<uint32_t>(sizes[begin]);
    while (end < sizes.size() && std::bit_cast<uint32_t>(sizes[end]) == bits)
      ++end;
    gpu.driver.check(
        gpu.driver.memsetD32Async(memory.address() + begin * sizeof(float),
                                  bits, end - begin, stream),
        "setting the learning rate");
  }
  known = true;
}

} // namespace neuroshard::cuda
