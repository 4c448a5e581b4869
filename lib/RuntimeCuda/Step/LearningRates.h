//===- LearningRates.h - Learning rates in device memory --------*- C++ -*-===//
//
// The step size of each table's optimizer, an f32. Set by fills and not by
// copies, so that no host memory has to outlive the call.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_LEARNINGRATES_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_LEARNINGRATES_H

#include "Binding.h"
#include "Driver/GpuMemory.h"

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
  void setSizes(std::span<const float> ofSlot, CUstream stream);
  bool isSet() const { return known; }
  int64_t bytes() const { return memory.size(); }

  const float *ofSlot(size_t slot) const {
    return memory.as<const float>(
        static_cast<int64_t>(wordOfSlot[slot] * sizeof(float)));
  }

private:
  void write(std::span<const float> sizes, CUstream stream);

  const Gpu &gpu;
  std::vector<Optimizer> optimizers; ///< per word.
  std::vector<size_t> wordOfSlot;
  std::vector<bool> isTrained; ///< per slot.
  DeviceBlock memory;
  bool known = false;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_LEARNINGRATES_H
