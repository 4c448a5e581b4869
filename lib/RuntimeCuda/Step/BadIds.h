//===- BadIds.h - Ids that kernels found out of range ----------*- C++ -*-===//
//
// Kernels write the first bad id of a plan into a word in device memory
// (GpuKernelABI.h: nsg_lookup_task.ids).
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_BADIDS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_BADIDS_H

#include "Binding.h"
#include "Driver/GpuMemory.h"
#include "StepPlan.h"

#include <optional>
#include <string>

namespace neuroshard::cuda {

class BadIds {
public:
  BadIds(const Gpu &gpu, const Binding &binding, const OwnStream &uploads);

  /// Throws a RuntimeError if there are too many plans.
  uint64_t *wordOf(const StepPlan &plan) const;

  /// Reads and clears the words of `plans`, after the work on `stream`.
  /// Returns the message of one bad id, if there is any; a kept one first.
  std::optional<std::string>
  collect(const std::vector<std::unique_ptr<StepPlan>> &plans, CUstream stream);

  /// Keeps the message of the plan's bad id, if any, for the next collect. To
  /// be called before the plan's parts change to other lookups. Waits for the
  /// GPU.
  void keep(const StepPlan &plan);

  int64_t bytes() const { return words.size(); }

private:
  uint64_t readWord(const StepPlan &plan) const;
  std::string describe(const StepPlan &plan, uint64_t word) const;
  std::string describeValue(const StepPlan &plan, size_t task,
                            int64_t position) const;
  bool copyBack(void *to, CUdeviceptr from, size_t bytes) const;
  void clear(CUstream stream, size_t first, size_t count) const;

  const Gpu &gpu;
  const Binding &binding;
  const OwnStream &uploads;
  DeviceBlock words;
  PinnedBlock copies;
  std::optional<std::string> kept;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_BADIDS_H
