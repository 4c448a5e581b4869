//===- UpdateMemory.h - Temporaries of an update, by what runs it ---------===//
///
/// \file
/// The rows of docs/memory.md on the update. Kernels on GPUs, the runtime on
/// hosts and TorchRec sort ids in memory of different sizes.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_PLANNER_MEMORY_UPDATEMEMORY_H
#define NEUROSHARD_LIB_PLANNER_MEMORY_UPDATEMEMORY_H

#include "neuroshard/Artifact/StepTraffic.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <cstdint>

namespace neuroshard {

/// What will run the steps of a plan: the target and the first device tell.
Engine engineOf(const ShardingProblem &problem);

/// Bytes that the update of `shard` by `ids` ids of a feature takes beside
/// gradients.
int64_t updateBytes(const ShardingProblem &problem, const Table &table,
                    const Feature &feature, const Shard &shard, int64_t ids);

/// Bytes of one row that waits for the norms of other column shards.
int64_t reducedRowBytes(const ShardingProblem &problem, const Table &table,
                        const Shard &shard);

/// f32 elements that one row of per-element optimizer state takes.
int64_t stateRowElements(const ShardingProblem &problem, int64_t width);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_MEMORY_UPDATEMEMORY_H
