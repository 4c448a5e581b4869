//===- FreeSlots.h - A set of slots that gives its lowest -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_IDS_FREESLOTS_H
#define NEUROSHARD_LIB_RUNTIMETORCH_IDS_FREESLOTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neuroshard::runtime {

/// A bit for each slot, and above 64 of them one that says whether any is set,
/// up to a single word.
class FreeSlots {
public:
  /// Of slots below `numSlots`, none is in the set.
  explicit FreeSlots(size_t numSlots);

  int64_t size() const { return count; }
  /// The slot must not be there.
  void insert(int32_t slot);
  /// Takes the lowest out; there must be one.
  int32_t takeFirst();
  void clear();

  int64_t bytes() const;

private:
  std::vector<std::vector<uint64_t>> levels; ///< slots first.
  int64_t count = 0;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_FREESLOTS_H
