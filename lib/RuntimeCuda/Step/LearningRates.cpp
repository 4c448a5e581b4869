//===- LearningRates.cpp - Learning rates in device memory ----------------===//
//
// Finds the slots that share a step size, and sets the sizes.
//
//===----------------------------------------------------------------------===//

#include "LearningRates.h"

#include <algorithm>
#include <bit>

using namespace neuroshard::runtime;

namespace neuroshard::cuda {
LearningRates::LearningRates(const Gpu &gpu, const Binding &binding)
    : gpu(gpu) {
  for (size_t slot = 0; slot < binding.numSlots(); ++slot) {
    // Slots that are not trained have no step; they share that of SGD.
    isTrained.push_back(binding.tableOf(slot).trained());
    Optimizer optimizer = binding.tableOf(slot).optimizer.value_or(Optimizer());
    auto same = std::find_if(optimizers.begin(), optimizers.end(),
                             [&](const Optimizer &other) {
                               return haveSameStepSize(optimizer, other);
                             });
    sizeOfSlot.push_back(static_cast<size_t>(same - optimizers.begin()));
    if (same == optimizers.end())
      optimizers.push_back(optimizer);
  }
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
  CUdeviceptr at = memory.address();
  for (StepSize one : sizes)
    for (float value : {one.size, one.kept}) {
      gpu.driver.check(gpu.driver.memsetD32Async(
                           at, std::bit_cast<uint32_t>(value), 1, stream),
                       "setting the learning rate");
      at += sizeof(float);
    }
  known = true;
}

} // namespace neuroshard::cuda
