//===- LearningRates.cpp - Learning rates in device memory ----------------===//
//
// Tables of equal step sizes are side by side unless they have learning rates
// of their own, so that one fill sets those of all.
//
//===----------------------------------------------------------------------===//

#include "LearningRates.h"

#include <algorithm>
#include <array>
#include <bit>

using namespace neuroshard::runtime;

namespace neuroshard::cuda {
LearningRates::LearningRates(const Gpu &gpu, const Binding &binding)
    : gpu(gpu) {
  std::vector<const TableSpec *> tables;
  for (size_t slot = 0; slot < binding.numSlots(); ++slot) {
    const TableSpec *table = &binding.tableOf(slot);
    if (!table->trained() || std::ranges::find(tables, table) != tables.end())
      continue;
    auto alike = std::ranges::find_if(tables, [&](const TableSpec *other) {
      return haveSameStepSize(*other->optimizer, *table->optimizer);
    });
    tables.insert(alike, table);
  }
  for (const TableSpec *table : tables)
    optimizers.push_back(*table->optimizer);
  for (size_t slot = 0; slot < binding.numSlots(); ++slot) {
    auto table = std::ranges::find(tables, &binding.tableOf(slot));
    isTrained.push_back(table != tables.end());
    sizeOfSlot.push_back(static_cast<size_t>(table - tables.begin()));
  }
  // Slots that are not trained have no step; they share the last place.
  optimizers.emplace_back();
  memory = DeviceBlock(
      gpu, static_cast<int64_t>(optimizers.size() * sizeof(StepSize)),
      "the learning rates");
}

void LearningRates::set(float learningRate, int64_t step, CUstream stream) {
  if (!std::isfinite(learningRate))
    fail("the learning rate must be finite, found ", learningRate);
  std::vector<StepSize> sizes;
  for (const Optimizer &optimizer : optimizers)
    sizes.push_back(stepSize(optimizer, learningRate, step));
  write(sizes, stream);
}

void LearningRates::setSizes(std::span<const runtime::StepSize> ofSlot,
                             CUstream stream) {
  std::vector<StepSize> sizes(optimizers.size());
  for (size_t slot = 0; slot < ofSlot.size(); ++slot)
    if (isTrained[slot])
      sizes[sizeOfSlot[slot]] = ofSlot[slot];
  write(sizes, stream);
}

void LearningRates::write(std::span<const runtime::StepSize> sizes,
                          CUstream stream) {
  for (size_t begin = 0, end = 0; begin < sizes.size(); begin = end) {
    while (end < sizes.size() && sizes[end] == sizes[begin])
      ++end;
    CUdeviceptr at = memory.address() + begin * sizeof(StepSize);
    using Words = std::array<uint32_t, sizeof(StepSize) / sizeof(uint32_t)>;
    for (uint32_t value : std::bit_cast<Words>(sizes[begin])) {
      gpu.driver.check(gpu.driver.memsetD2D32Async(at, sizeof(StepSize), value,
                                                   1, end - begin, stream),
                       "setting the learning rate");
      at += sizeof(value);
    }
  }
  known = true;
}

} // namespace neuroshard::cuda
