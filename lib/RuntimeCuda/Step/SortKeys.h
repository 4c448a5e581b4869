//===- SortKeys.h - Keys and positions that an update sorts -----*- C++ -*-===//
//
// Positions. The update sorts positions, one per id of every part that has
// gradients. An exact part has a range of positions of its own. For other parts
// only the kernel knows which ids they have. Such parts of different features
// of one jagged input share a range, called a layer, so that each position has
// at most one reader; a feature that is looked up again gets another layer. A
// slot's positions are in the order of its parts, since gradients are added in
// that order.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_SORTKEYS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_SORTKEYS_H

#include "Binding.h"
#include "Part.h"

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace neuroshard::cuda {

/// The keys of the rows of each slot. First come the slots that are updated,
/// those with the same bodies side by side, as a launch takes neighbours; then
/// slots that are only read but whose lookups have gradients
/// of sample weights.
struct KeySpace {
  std::vector<int32_t> updated;  ///< slots, in the order of their keys.
  std::vector<int64_t> keyBegin; ///< per slot; -1: no keys.
  int64_t end = 0;               ///< larger than all keys.
  int32_t keyBytes = 4;
  int32_t endBit = 1; ///< bits in which keys and the filler differ.

  explicit KeySpace(const Binding &binding);

  /// Whether ids of this slot have positions.
  bool hasPositions(size_t slot) const { return keyBegin[slot] >= 0; }
};

/// Hands out ranges of positions to parts.
class PositionMaker {
public:
  /// Returns the position of id 0 of the part's array; may be negative, since
  /// ids before id_begin have no position.
  int64_t place(const Part &part, int32_t slot, bool exact);

  int64_t total = 0;
  bool filled = false;

private:
  struct Layer {
    int64_t begin;
    std::set<int32_t> features;
  };
  /// Where a slot's latest part is.
  struct Last {
    int64_t begin = -1;
    int32_t feature = -1;
  };

  int64_t append(int64_t count);

  std::map<std::tuple<const void *, int64_t, int64_t>, std::vector<Layer>>
      groups;
  std::map<int32_t, Last> lastOfSlot;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_SORTKEYS_H
