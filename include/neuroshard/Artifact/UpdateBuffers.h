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

/// Ids whose gradients are added up to one row, and ids of a piece of a small
/// slot; those of GpuKernelABI.h.
inline constexpr int64_t kChunkIds = 256;
inline constexpr int64_t kPieceIds = 256;

/// How the pieces of a small slot are added up.
struct SmallSums {
  int64_t piecesPerSum = 1;
  int64_t sumsOfRow = 0;
};

SmallSums addUpPieces(int64_t rows, int64_t pieces);

/// What a device's arrays look like, whatever the step. "Small" slots are
/// updated without a sort.
struct UpdateRows {
  int32_t keyBytes = 4;    ///< of a key of the sort.
  bool hasFactors = false; ///< some lookup is weighted or a mean.
  int64_t widest = 0; ///< floats of the widest row of a sorted slot, padded.
  /// Floats of a row, per sorted slot; 0 for those that are not two-phase.
  std::vector<int64_t> reducedStride;
  std::vector<int64_t> sumStride; ///< floats of a row, per small slot.
  int64_t pieceStride = 0;        ///< rows of the longest small slot, and one.
};

/// How much of everything a step needs.
struct UpdateNeeds {
  int64_t positions = 0; ///< ids that are sorted.
  int64_t unsorted = 0;  ///< behind them.
  int64_t pieces = 0;    ///< of the ids of small slots.
  int64_t sortBytes = 0; ///< scratch of the sort.
  /// Per sorted slot; 0 for those that are not two-phase.
  std::vector<int64_t> reducedRows;
  std::vector<int64_t> sumRows; ///< per small slot.

  /// Whether memory of these sizes is enough for `other`.
  bool covers(const UpdateNeeds &other) const;
};

/// Where each array begins.
struct UpdateBuffers {
  // One value per sorted position.
  int64_t keys, sortedKeys, iota, order;
  int64_t starts; ///< and one.
  // One per position.
  int64_t offsets, factors;
  int64_t numRuns, runBegin, sortTemp;
  int64_t partials; ///< a row for each chunk of positions.
  // Of small slots.
  int64_t pieceOrder, pieceStarts;
  std::vector<int64_t> reduced, norms; ///< per sorted slot.
  std::vector<int64_t> sums, counts;   ///< per small slot.
  int64_t bytes;
};

/// Arrays begin at multiples of `alignment` bytes.
UpdateBuffers layOutUpdate(const UpdateRows &rows, const UpdateNeeds &needs,
                           int64_t alignment);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_UPDATEBUFFERS_H
