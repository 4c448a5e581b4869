//===- LearningRates.h - Learning rates in device memory --------*- C++ -*-===//
//
// The step size of each table's optimizer. Set by fills and not by copies, so
// that no host memory has to outlive the call.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_LEARNINGRATES_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_LEARNINGRATES_H

#include "Binding.h"
#include "Driver/GpuMemory.h"
#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <span>
#include <vector>

namespace neuroshard::cuda {

class LearningRates {
public:
  LearningRates(const Gpu &gpu, const Binding &binding);

  /// Throws a RuntimeError for a rate that is not finite, or a step that an
  /// optimizer cannot take.
  void set(float learningRate, int64_t step, CUstream stream);
  /// The same with the step size of each slot.
  void setSizes(std::span<const runtime::StepSize> ofSlot, CUstream stream);
  bool isSet() const { return known; }
  int64_t bytes() const { return memory.size(); }

  /// Its runtime::StepSize.
  const float *ofSlot(size_t slot) const {
    return memory.as<const float>(
        static_cast<int64_t>(sizeOfSlot[slot] * sizeof(runtime::StepSize)));
  }

private:
  void write(std::span<const runtime::StepSize> sizes, CUstream stream);

  const Gpu &gpu;
  std::vector<Optimizer> optimizers; ///< per step size.
  std::vector<size_t> sizeOfSlot;
  std::vector<bool> isTrained; ///< per slot.
  DeviceBlock memory;
  bool known = false;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_LEARNINGRATES_H
