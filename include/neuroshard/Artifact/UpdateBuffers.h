//===- UpdateBuffers.h - Device memory of an update on a GPU ----*- C++ -*-===//
//
// The arrays in which the kernels of an update work, one behind the other. The
// runtime on GPUs lays its memory out by them, and the planner counts their
// bytes.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_UPDATEBUFFERS_H
#define NEUROSHARD_ARTIFACT_UPDATEBUFFERS_H

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Ids whose gradients are added up to one row; NSG_CHUNK of GpuKernelABI.h.
inline constexpr int64_t kChunkIds = 256;

/// What a device's arrays look like, whatever the step.
struct UpdateRows {
  int32_t keyBytes = 4;    ///< of a key of the sort.
  bool hasFactors = false; ///< some lookup is weighted or a mean.
  int64_t widest = 0;      ///< floats of the widest row of a slot, padded.
  /// Floats of a row, per slot; 0 for those that keep no sums of rows: not
  /// two-phase and without copies.
  std::vector<int64_t> reducedStride;
  /// Norms of a row, per slot, where it keeps sums of rows.
  std::vector<int64_t> normsPerRow;
};

/// How much of everything a step needs.
struct UpdateNeeds {
  int64_t positions = 0; ///< ids that are sorted.
  int64_t sortBytes = 0; ///< scratch of the sort.
  /// Per slot; 0 for those that keep no sums of rows.
  std::vector<int64_t> reducedRows;

  /// Whether memory of these sizes is enough for `other`.
  bool covers(const UpdateNeeds &other) const;
};

/// Where each array begins.
struct UpdateBuffers {
  // One value per position.
  int64_t keys, sortedKeys, iota, order;
  int64_t starts; ///< and one.
  int64_t offsets, factors;
  int64_t numRuns, runBegin, sortTemp;
  int64_t partials;                    ///< a row for each chunk of positions.
  std::vector<int64_t> reduced, norms; ///< per slot.
  int64_t bytes;
};

/// Arrays begin at multiples of `alignment` bytes.
UpdateBuffers layOutUpdate(const UpdateRows &rows, const UpdateNeeds &needs,
                           int64_t alignment);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_UPDATEBUFFERS_H
