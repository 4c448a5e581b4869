//===- LearningRates.cpp - Learning rates in device memory ----------------===//
//
// Finds the slots that share a step size, and sets the sizes.
//
//===----------------------------------------------------------------------===//

#include "LearningRates.h"
#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <algorithm>
#include <bit>

using namespace neuroshard::runtime;

namespace neuroshard::cuda {
namespace {

bool sameStepSize(const Optimizer &a, const Optimizer &b) {
  bool adam = a.kind == OptimizerKind::Adam;
  if (adam != (b.kind == OptimizerKind::Adam))
    return false;
  return !adam || (a.beta1 == b.beta1 && a.beta2 == b.beta2);
}

} // namespace

LearningRates::LearningRates(const Gpu &gpu, const Binding &binding)
    : gpu(gpu) {
  for (size_t slot = 0; slot < binding.numSlots(); ++slot) {
    // Slots that are not trained have no step; they share that of SGD.
    isTrained.push_back(binding.tableOf(slot).trained());
    Optimizer optimizer = binding.tableOf(slot).optimizer.value_or(Optimizer());
    auto same = std::find_if(
        optimizers.begin(), optimizers.end(),
        [&](const Optimizer &other) { return sameStepSize(optimizer, other); });
    wordOfSlot.push_back(static_cast<size_t>(same - optimizers.begin()));
    if (same == optimizers.end())
      optimizers.push_back(optimizer);
  }
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
  for (size_t slot = 0; slot < ofSlot.size(); ++slot)
    if (isTrained[slot])
      sizes[wordOfSlot[slot]] = ofSlot[slot];
  write(sizes, stream);
}

void LearningRates::write(std::span<const float> sizes, CUstream stream) {
  for (size_t i = 0; i < sizes.size(); ++i)
    gpu.driver.check(
        gpu.driver.memsetD32Async(memory.address() + i * sizeof(float),
                                  std::bit_cast<uint32_t>(sizes[i]), 1, stream),
        "setting the learning rate");
  known = true;
}

} // namespace neuroshard::cuda
