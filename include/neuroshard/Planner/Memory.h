//===- Memory.h - Memory of shards and devices ------------------*- C++ -*-===//
///
/// \file
/// The terms, their formulas and sources are in docs/memory.md.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_PLANNER_MEMORY_H
#define NEUROSHARD_PLANNER_MEMORY_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/MemoryTerms.h"

#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard {

/// Features of each table, by table index; made once per problem.
std::vector<std::vector<int>> featuresOfTables(const ShardingProblem &problem);

/// What a shard adds on each device that holds it. `features` are those of its
/// table; `norms`: needsNormExchange() of all the table's shards.
MemoryTerms shardMemory(const ShardingProblem &problem, const Table &table,
                        const std::vector<int> &features, const Shard &shard,
                        bool norms);

/// The same for a shard whose table is cut by columns if the shard itself is.
MemoryTerms shardMemory(const ShardingProblem &problem, const Table &table,
                        const std::vector<int> &features, const Shard &shard);

/// What each device holds whatever the plan: ids and results of its part of
/// the batch, communicator, reserves.
std::vector<MemoryTerms> deviceBaseMemory(const ShardingProblem &problem);

/// What every device holds in addition for each table split by columns: the
/// copy that puts the columns together.
int64_t columnPermuteBytes(const ShardingProblem &problem, const Table &table,
                           const std::vector<int> &features);

/// By host, what its ranks take for the maps of dynamic ids.
std::vector<int64_t> idMapMemory(const ShardingProblem &problem);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_MEMORY_H
