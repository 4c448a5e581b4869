//===- StepMemory.h - Buffers of a training step on a GPU -------*- C++ -*-===//
//
// One block of device memory for keys, their sort, the places of gradients and
// the sums and norms of two-phase optimizers. It only grows, and is not freed
// while a captured graph may use it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPMEMORY_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPMEMORY_H

#include "Driver/GpuMemory.h"
#include "StepTasks.h"
#include "neuroshard/Artifact/UpdateBuffers.h"

#include <cstdint>
#include <vector>

namespace neuroshard::cuda {

class StepMemory {
public:
  /// `uploads` is the stream for values that are written once.
  StepMemory(const Gpu &gpu, const Binding &binding, const KeySpace &keys,
             const OwnStream &uploads);

  /// Makes room for a step. Keeps the old memory if a captured graph uses it;
  /// `capturing`: the step that is captured now. Waits for the GPU if it has to
  /// allocate.
  void reserve(const UpdateNeeds &needs, bool capturing);

  /// A number that changes whenever the addresses change.
  uint64_t generation() const { return current; }
  int64_t bytes() const;
  int64_t sortBytes() const { return capacity.sortBytes; }

  // Arrays with room for one value per position.
  void *keys() const { return at<void>(layout.keys); }
  /// In the memory of the keys, which nothing reads after the sort.
  void *distinctKeys() const { return keys(); }
  void *sortedKeys() const { return at<void>(layout.sortedKeys); }
  int32_t *iota() const { return at<int32_t>(layout.iota); }
  int32_t *order() const { return at<int32_t>(layout.order); }
  int32_t *starts() const {
    return at<int32_t>(layout.starts);
  } ///< and one more
  int64_t *gradientOffsets() const { return at<int64_t>(layout.offsets); }
  float *factors() const; ///< null if all are 1.
  /// One row per chunk of positions, as wide as the widest slot.
  float *partials() const { return at<float>(layout.partials); }
  int64_t partialStride() const { return rows.widest; }
  int32_t *numRuns() const { return at<int32_t>(layout.numRuns); }
  int32_t *runBegin() const { return at<int32_t>(layout.runBegin); }
  void *sortTemp() const { return at<void>(layout.sortTemp); }
  /// Of an updated slot; null if it is not two-phase.
  float *reduced(size_t updated) const;
  float *norms(size_t updated) const;
  int64_t reducedRows(size_t updated) const {
    return capacity.reducedRows[updated];
  }

  /// Whether nothing was reserved yet.
  bool empty() const { return current == 0; }

private:
  template <typename T> T *at(int64_t offset) const {
    return reinterpret_cast<T *>(block.address() +
                                 static_cast<CUdeviceptr>(offset));
  }
  void fillIota();

  const Gpu &gpu;
  const OwnStream &uploads;
  UpdateRows rows;
  UpdateNeeds capacity;
  UpdateBuffers layout = {};
  DeviceBlock block;
  std::vector<DeviceBlock> retired;
  bool captured = false;
  uint64_t generations = 0;
  uint64_t current = 0;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPMEMORY_H
