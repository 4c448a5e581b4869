//===- ReplicaMemory.h - Backward of replicated tables ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_MEMORY_REPLICAMEMORY_H
#define NEUROSHARD_LIB_PLANNER_MEMORY_REPLICAMEMORY_H

#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/MemoryTerms.h"

#include <vector>

namespace neuroshard {

/// Adds the phases of a replica: results and ids are those of the device's own
/// batch (deviceBaseMemory). `features`: of its table.
void addReplicaPhases(const ShardingProblem &problem, const Table &table,
                      const std::vector<int> &features, const Shard &shard,
                      MemoryTerms &terms);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_MEMORY_REPLICAMEMORY_H
