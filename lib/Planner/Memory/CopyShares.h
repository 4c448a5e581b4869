//===- CopyShares.h - Parts of a batch that copies serve --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_MEMORY_COPYSHARES_H
#define NEUROSHARD_LIB_PLANNER_MEMORY_COPYSHARES_H

#include "neuroshard/Model/ShardingProblem.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Devices by group of the innermost level, as artifacts have them; none
/// without a common size.
std::vector<std::vector<int32_t>> innermostGroups(const Topology &topology);

/// One copy among those of a shard. Inside means in the copy's group of the
/// innermost level, where groups have relays.
struct CopyShare {
  double batch = 1;         ///< the part of the batch of its readers.
  bool isForOthers = true;  ///< ranks of other devices are among these.
  double insideReaders = 0; ///< the part of these that are inside.
  double insideCopies = 0;  ///< the part of the other copies that are inside.
  int copies = 1;           ///< of the shard.
};

/// By device, in ascending order. Of a shard that is not replicated.
std::vector<CopyShare> copyShares(const ShardingProblem &problem,
                                  const Shard &shard);

/// The largest part of the batch that a copy serves; 1 of a shard without
/// copies.
double largestCopyShare(const ShardingProblem &problem, const Shard &shard);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_MEMORY_COPYSHARES_H
