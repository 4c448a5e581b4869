//===- DistinctIds.h - The distinct ids of a batch, by owner ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_IDS_DISTINCTIDS_H
#define NEUROSHARD_LIB_RUNTIMETORCH_IDS_DISTINCTIDS_H

#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Each id of a batch once: those of rank 0 first; of one owner, in the order
/// in which the batch names them first.
struct DistinctIds {
  std::vector<int64_t> ids;
  std::vector<int64_t> places; ///< by id of the batch, where it is in `ids`.
  std::vector<int64_t> counts; ///< by owner.
};

DistinctIds findDistinct(std::span<const int64_t> ids, int32_t ranks);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_DISTINCTIDS_H
