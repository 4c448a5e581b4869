//===- StepPlan.h - The arrays of a step on the GPU ------------*- C++ -*-===//
//
// What StepTasks makes, uploaded. Plans are kept and found again by their
// parts, so that a step with the pointers and sizes of an earlier one uploads
// nothing. A captured graph has a plan of its own for good.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPPLAN_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPPLAN_H

#include "Driver/Gpu.h"
#include "StepTasks.h"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace neuroshard::cuda {

/// Device memory with a pinned copy, by which changes are seen.
class UploadedArray {
public:
  template <typename T> const T *as(int64_t offset = 0) const {
    return device.as<const T>(offset);
  }
  /// For structs whose field some kernels write: those that get this do not.
  template <typename T> T *writable(int64_t offset) const {
    return const_cast<T *>(as<T>(offset));
  }
  int64_t allocatedBytes() const { return device.size(); }

private:
  friend class Uploader;
  DeviceBlock device;
  PinnedBlock host;
  int64_t bytes = 0;
};

/// Everything of one set of parts.
struct StepPlan {
  explicit StepPlan(const Gpu &gpu) : uploaded(gpu), forked(gpu), sorted(gpu) {}

  int64_t allocatedBytes() const;

  std::vector<nsc_part> parts;
  bool training = false;
  bool captured = false;
  uint64_t lastUse = 0;
  size_t badIdWord = 0; ///< of BadIds.

  StepTasks step;
  std::vector<GradientPlace> places;
  uint64_t generation = 0; ///< of the StepMemory that `training` points to.

  UploadedArray tasks;
  /// By TaskKernel, and what it was made of.
  std::array<UploadedArray, kTaskKernels> taskOfBlock;
  std::array<std::vector<int64_t>, kTaskKernels> blocksOfTasks;
  /// TrainingHead, nsg_slot [updated], nsg_slot [small], and for those runs as
  /// nsg_sorted has them: int32_t [small + 1] for sums and as many for rows.
  UploadedArray trainingArray;
  UploadedArray sortedArray; ///< SortedHead.

  Event uploaded; ///< the last upload was read.
  Event forked;   ///< where the sort may begin.
  Event sorted;   ///< the sort is done.
};

/// First in StepPlan::trainingArray.
struct TrainingHead {
  nsg_positions first; ///< the expansion before the sort.
  nsg_positions again; ///< after it: gradients are elsewhere than expected.
  nsg_pieces pieces;
};

/// Where the rest of StepPlan::trainingArray begins, in bytes.
struct TrainingLayout {
  explicit TrainingLayout(const KeySpace &keys);

  int64_t sortedSlots, smallSlots, sumsBegin, rowsBegin;
};

/// What is told of the gradients.
struct SortedHead {
  nsg_sorted sorted;
  nsg_sorted smallSums;   ///< for nsg_small_sums.
  nsg_sorted smallUpdate; ///< for nsg_small_update.
};

/// Brings arrays of a plan to the GPU, if they have changed. `stream` orders
/// them before the kernels; while it is captured, they are copied at once.
class Uploader {
public:
  Uploader(const Gpu &gpu, StepPlan &plan, CUstream stream,
           const OwnStream &uploads);

  template <typename T>
  void put(UploadedArray &array, std::span<const T> values) {
    putBytes(array, values.data(), static_cast<int64_t>(values.size_bytes()));
  }

  /// Uploads the tasks and, for kernels whose blocks have changed, the task of
  /// each block.
  void putTasks();

  /// After the last put.
  void finish();

  int64_t numCopies() const { return copies; }

private:
  void putBytes(UploadedArray &array, const void *values, int64_t bytes);
  void makeRoom(UploadedArray &array, int64_t bytes);

  const Gpu &gpu;
  StepPlan &plan;
  CUstream stream;
  const OwnStream &uploads;
  int64_t copies = 0;
};

/// The plans of a device.
class PlanCache {
public:
  explicit PlanCache(const Gpu &gpu) : gpu(gpu) {}

  /// The plan of these parts, or null. Never one that was captured.
  StepPlan *find(std::span<const nsc_part> parts, bool training);

  /// A plan to fill: a new one, or the one used longest ago.
  StepPlan &take(bool capturing);

  /// Drops a plan that was not filled to its end.
  void drop(StepPlan &plan);

  const std::vector<std::unique_ptr<StepPlan>> &all() const { return plans; }

private:
  const Gpu &gpu;
  std::vector<std::unique_ptr<StepPlan>> plans;
  uint64_t uses = 0;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPPLAN_H
