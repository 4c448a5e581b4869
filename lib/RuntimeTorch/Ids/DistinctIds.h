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
  void makeRoom(size_t numIds);
  /// Numbers the ids; returns how many distinct ones there are.
  size_t number(std::span<const int64_t> ids);
  void sortByOwner(size_t numDistinct, int32_t ranks);

  /// A hash table with linear probing: numbers of distinct ids; 0: free.
  std::vector<int32_t> table;
  std::vector<int64_t> distinct; ///< by number, from 1 on.
  std::vector<int32_t> owners;   ///< by number.
  std::vector<int32_t> sorted;   ///< by number, where the id is by owner.
  DistinctIds result;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_DISTINCTIDS_H
