//===- DistinctIds.h - The distinct ids of a batch, by owner ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_IDS_DISTINCTIDS_H
#define NEUROSHARD_LIB_RUNTIMETORCH_IDS_DISTINCTIDS_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Each id of a batch once: those of rank 0 first; of one owner, in the order
/// in which the batch names them first.
struct DistinctIds {
  std::vector<int64_t> ids;
  std::vector<int32_t> places; ///< by id of the batch, where it is in `ids`.
  std::vector<int64_t> counts; ///< by owner.
};

/// Keeps its memory from one batch to the next.
class DistinctFinder {
public:
  /// Of fewer than 2^31 ids. The result is valid until the next call.
  const DistinctIds &find(std::span<const int64_t> ids, int32_t ranks);

private:
  /// Of a hash table with linear probing.
  struct Place {
    int64_t id;
    int32_t number;     ///< among the distinct ids.
    uint32_t round = 0; ///< the call that has taken it.
  };

  void makeRoom(size_t numIds);
  /// The place of an id in the table, or the free one where the search ends.
  Place &placeOf(uint64_t hash, int64_t id);
  void sortByOwner(int32_t ranks);

  std::vector<Place> table;
  uint32_t round = 0;
  std::vector<int32_t> owners; ///< by distinct id.
  std::vector<int64_t> unsorted;
  std::vector<int32_t> sorted; ///< where each of them is by owner.
  DistinctIds result;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_DISTINCTIDS_H
