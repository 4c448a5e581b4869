//===- RelayMemory.h - Buffers of relays ------------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_PLANMEMORY_RELAYMEMORY_H
#define NEUROSHARD_LIB_PLANNER_PLANMEMORY_RELAYMEMORY_H

#include "neuroshard/Planner/Memory.h"

namespace neuroshard {

/// Adds what relays take, and their owners: docs/memory.md. `idsBytes`: what
/// the ids of each shard take on its device. Expects a problem without
/// snapshots.
void addRelayBuffers(const ShardingProblem &problem,
                     std::span<const Shard> shards,
                     std::span<const int64_t> idsBytes,
                     std::vector<MemoryTerms> &devices);

/// For searches, which do not look at whole plans: room on each device for what
/// relays have received of later batches, above the device's own ids.
int64_t roomForRelayedIds(const ShardingProblem &problem);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_PLANMEMORY_RELAYMEMORY_H
