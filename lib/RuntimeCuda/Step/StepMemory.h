//===- StepMemory.h - Buffers of a training step on a GPU -------*- C++ -*-===//
//
// One block of device memory for keys, their sort, the places of gradients and
// what two-phase optimizers keep. It only grows, and is never given back while
// a captured graph may use it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPMEMORY_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPMEMORY_H

#include "Driver/Gpu.h"
#include "StepTasks.h"

#include <cstdint>
#include <vector>

namespace neuroshard::cuda {

/// How much of everything a step needs.
struct StepNeeds {
  int64_t positions = 0; ///< that are sorted.
  int64_t unsorted = 0;  ///< behind them.
  int64_t pieces = 0;    ///< of small slots.
  int64_t sortBytes = 0;
  /// Per updated slot; 0 for those that are not two-phase.
  std::vector<int64_t> reducedRows;
  /// Per small slot.
  std::vector<int64_t> sumRows;

  bool covers(const StepNeeds &other) const;
};

class StepMemory {
public:
  /// `uploads` is used for what is written once.
  StepMemory(const Gpu &gpu, const Binding &binding, const KeySpace &keys,
             const OwnStream &uploads);

  /// Makes room. `capturing`: memory in use stays as it is, for the graphs
  /// that were captured. Waits for the GPU if it has to allocate.
  void reserve(const StepNeeds &needs, bool capturing);

  /// Changes whenever the addresses do.
  uint64_t generation() const { return current; }
  int64_t bytes() const;
  int64_t sortBytes() const { return capacity.sortBytes; }

  // Arrays with room for one value per sorted position.
  void *keys() const { return at<void>(layout.keys); }
  /// Distinct keys take the place of the keys, which nothing reads any more.
  void *distinctKeys() const { return keys(); }
  void *sortedKeys() const { return at<void>(layout.sortedKeys); }
  int32_t *iota() const { return at<int32_t>(layout.iota); }
  int32_t *order() const { return at<int32_t>(layout.order); }
  int32_t *starts() const { return at<int32_t>(layout.starts); } ///< and one
  // And for all positions.
  int64_t *gradientOffsets() const { return at<int64_t>(layout.offsets); }
  float *factors() const; ///< null if all are 1.
  /// A row per chunk of positions, as wide as the widest slot.
  float *partials() const { return at<float>(layout.partials); }
  int64_t partialStride() const { return widest; }
  /// Of small slots.
  nsg_pieces pieces() const {
    return {at<int32_t>(layout.pieceOrder), at<int32_t>(layout.pieceStarts),
            pieceStride};
  }

  int32_t *numRuns() const { return at<int32_t>(layout.numRuns); }
  int32_t *runBegin() const { return at<int32_t>(layout.runBegin); }
  void *sortTemp() const { return at<void>(layout.sortTemp); }
  /// Of an updated slot; null if it is not two-phase.
  float *reduced(size_t updated) const;
  float *norms(size_t updated) const;
  int64_t reducedRows(size_t updated) const {
    return capacity.reducedRows[updated];
  }

  /// Of a small slot.
  float *sums(size_t small) const { return at<float>(layout.sums[small]); }
  float *counts(size_t small) const { return at<float>(layout.counts[small]); }

  /// Nothing was reserved yet.
  bool empty() const { return current == 0; }

private:
  struct Layout {
    int64_t keys, sortedKeys, iota, order, starts, offsets, factors;
    int64_t numRuns, runBegin, sortTemp, partials;
    int64_t pieceOrder, pieceStarts;
    std::vector<int64_t> reduced, norms, sums, counts;
    int64_t bytes;
  };

  template <typename T> T *at(int64_t offset) const {
    return reinterpret_cast<T *>(block.address() +
                                 static_cast<CUdeviceptr>(offset));
  }
  Layout makeLayout(const StepNeeds &needs) const;
  void fillIota();

  const Gpu &gpu;
  const OwnStream &uploads;
  int32_t keyBytes;
  bool hasFactors;
  int64_t widest = 0; ///< floats of the widest row of an updated slot, padded.
  std::vector<int64_t> reducedStride; ///< floats, per updated slot; 0: none.
  std::vector<int64_t> sumStride;     ///< floats, per small slot.
  int64_t pieceStride = 0;
  StepNeeds capacity;
  Layout layout = {};
  DeviceBlock block;
  std::vector<DeviceBlock> retired;
  bool captured = false;
  uint64_t generations = 0;
  uint64_t current = 0;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPMEMORY_H
