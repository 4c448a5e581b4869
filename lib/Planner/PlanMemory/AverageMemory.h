//===- AverageMemory.h - Messages of copies that drift ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_PLANMEMORY_AVERAGEMEMORY_H
#define NEUROSHARD_LIB_PLANNER_PLANMEMORY_AVERAGEMEMORY_H

#include "neuroshard/Planner/Memory.h"

namespace neuroshard {

/// Adds what copies that drift send and receive when they are averaged.
void addAverageMessages(const ShardingProblem &problem,
                        std::span<const Shard> shards,
                        std::vector<MemoryTerms> &devices);

/// For searches, which do not look at whole plans: bytes on each device that
/// are enough for that, if tables with sync_every, and shards written by hand,
/// drift.
int64_t roomForAverages(const ShardingProblem &problem);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_PLANMEMORY_AVERAGEMEMORY_H
