//===- Uploader.h - Uploads the arrays of a step ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_UPLOADER_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_UPLOADER_H

#include "Driver/UploadRing.h"
#include "StepPlan.h"

#include <cstdint>
#include <span>

namespace neuroshard::cuda {

/// Uploads those arrays of a plan that have changed: on `stream`, before the
/// kernels; or, while that is captured, at once on `uploads`. All arguments
/// must outlive it.
class Uploader {
public:
  Uploader(const Gpu &gpu, StepPlan &plan, CUstream stream,
           const OwnStream &uploads, UploadRing &ring);

  template <typename T>
  void put(UploadedArray &array, std::span<const T> values) {
    putBytes(array, values.data(), static_cast<int64_t>(values.size_bytes()));
  }

  /// Uploads the tasks and, for kernels whose blocks have changed, the task of
  /// each block.
  void putTasks();

  /// Must be called after the last put.
  void finish();

private:
  void putBytes(UploadedArray &array, const void *values, int64_t bytes);
  void makeRoom(UploadedArray &array, int64_t bytes);

  const Gpu &gpu;
  StepPlan &plan;
  CUstream stream;
  const OwnStream &uploads;
  UploadRing &ring;
  int64_t copies = 0;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_UPLOADER_H
