//===- StepSizes.cpp - Learning rates in device memory --------------------===//
//
// Finds the slots that share a step size, and fills it in.
//
//===----------------------------------------------------------------------===//

#include "StepSizes.h"
#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <algorithm>
#include <bit>

using namespace neuroshard::runtime;

namespace neuroshard::cuda {
namespace {

bool sameStepSize(const OptimizerSpec &a, const OptimizerSpec &b) {
  bool adam = a.kind == OptimizerKind::Adam;
  if (adam != (b.kind == OptimizerKind::Adam))
    return false;
  return !adam || (a.beta1 == b.beta1 && a.beta2 == b.beta2);
}

} // namespace

StepSizes::StepSizes(const Gpu &gpu, const Binding &binding) : gpu(gpu) {
  for (size_t slot = 0; slot < binding.numSlots(); ++slot) {
    const OptimizerSpec &optimizer = binding.tableOf(slot).optimizer;
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const OptimizerSpec &other) {
                               return sameStepSize(optimizer, other);
                             });
    wordOfSlot.push_back(size_t(kind - kinds.begin()));
    if (kind == kinds.end())
      kinds.push_back(optimizer);
  }
  memory = DeviceBlock(gpu, int64_t(kinds.size() * sizeof(float)),
                       "the learning rates");
}

void StepSizes::set(float learningRate, int64_t step, CUstream stream) {
  if (!std::isfinite(learningRate))
    fail("the learning rate must be finite, found ", learningRate);
  std::vector<float> sizes;
  for (const OptimizerSpec &kind : kinds)
    sizes.push_back(stepSize(kind, learningRate, step));
  for (size_t i = 0; i < sizes.size(); ++i)
    gpu.driver.check(
        gpu.driver.memsetD32Async(memory.address() + i * sizeof(float),
                                  std::bit_cast<uint32_t>(sizes[i]), 1, stream),
        "setting the learning rate");
  known = true;
}

} // namespace neuroshard::cuda
