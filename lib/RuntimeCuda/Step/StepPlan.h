//===- StepPlan.h - The arrays of a step on the GPU ------------*- C++ -*-===//
//
// The arrays of StepTasks in device memory. Uploader.h writes them, PlanCache.h
// keeps the plans of earlier steps.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPPLAN_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPPLAN_H

#include "Driver/GpuMemory.h"
#include "StepTasks.h"
#include "neuroshard/Runtime/Backend.h"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace neuroshard::cuda {

/// Device memory and a copy of its contents, to find changes.
class UploadedArray {
public:
  template <typename T> const T *as(int64_t offset = 0) const {
    return device.as<const T>(offset);
  }
  /// For fields that are not const since other kernels write there.
  template <typename T> T *writable(int64_t offset) const {
    return const_cast<T *>(as<T>(offset));
  }
  int64_t allocatedBytes() const { return device.size(); }

private:
  friend class Uploader;
  DeviceBlock device;
  std::vector<std::byte> contents;
  bool isUploaded = false;
};

/// What a step does with gradients: nothing, updates, or sums of rows alone:
/// of replicated tables, or of copied shards.
enum class StepKind { Inference, Training, RowSums, DistinctSums };

/// `training`: NSC_INFERENCE, or another value of nsc_forward.
inline StepKind kindOf(int32_t training) {
  return training == NSC_INFERENCE ? StepKind::Inference : StepKind::Training;
}

/// The tasks and arrays for one set of parts.
struct StepPlan {
  explicit StepPlan(const Gpu &gpu) : forked(gpu), sorted(gpu) {}

  int64_t allocatedBytes() const;

  std::vector<Part> parts;
  StepKind kind = StepKind::Inference;
  /// RowSums: where the sums of slots go.
  std::vector<runtime::SlotSums> sums;
  bool captured = false;
  uint64_t lastUse = 0;
  size_t badIdWord = 0; ///< of BadIds.

  StepTasks step;
  std::vector<GradientPlace> places;
  uint64_t generation = 0; ///< of the StepMemory that `training` points to.

  UploadedArray tasks;
  /// Per TaskKernel: the task of each block, and the blocks per task that it
  /// was made from.
  std::array<UploadedArray, kTaskKernels> taskOfBlock;
  std::array<std::vector<int64_t>, kTaskKernels> blocksOfTasks;
  UploadedArray trainingArray; ///< TrainingHead, nsg_slot [updated].
  UploadedArray sortedArray;   ///< nsg_sorted.
  UploadedArray cachedParts;   ///< nsg_cached_part.

  Event forked; ///< the sort may begin.
  Event sorted; ///< the sort is done.
};

/// The begin of StepPlan::trainingArray.
struct TrainingHead {
  nsg_positions first; ///< the expansion before the sort.
  nsg_positions again; ///< another one, if gradients are not where expected.
};

/// Where nsg_slot begins in StepPlan::trainingArray.
inline constexpr int64_t kSlotsBegin = sizeof(TrainingHead);

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPPLAN_H
