//===- CacheMemory.h - Memory of row caches ---------------------*- C++ -*-===//
///
/// \file
/// What the runtime takes for the row caches of shards in lower tiers: the rows
/// of docs/memory.md on them.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_PLANNER_MEMORY_CACHEMEMORY_H
#define NEUROSHARD_LIB_PLANNER_MEMORY_CACHEMEMORY_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <cstdint>

namespace neuroshard {

/// Bytes of a device, and beside it of its host.
struct CacheBytes {
  int64_t device = 0;
  int64_t host = 0;
};

/// The larger of each.
CacheBytes mostOf(CacheBytes one, CacheBytes other);

/// What a place of a cache takes, without rounding to pages.
CacheBytes cachePlaceOf(const ShardingProblem &problem, const Table &table,
                        const Shard &shard);

/// A cache with so many places, those of rows that spill included. On GPUs each
/// array of rows has whole pages, and the host knows which rows are where.
CacheBytes rowCacheBytes(const ShardingProblem &problem, const Table &table,
                         const Shard &shard, int64_t places);

/// What all shards of a device in a lower tier share: the buffers through which
/// their rows pass. Depends on the shard's tier, and is most for tier "ssd".
CacheBytes cacheStagingBytes(const ShardingProblem &problem, Tier tier);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_MEMORY_CACHEMEMORY_H
