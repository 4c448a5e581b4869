//===- PlanMemory.h - Memory of a plan by device and host -------*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_PLANMEMORY_H
#define NEUROSHARD_PLANNER_PLANMEMORY_H

#include "neuroshard/Planner/Memory.h"

#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard {

struct MemoryReport {
  std::vector<MemoryTerms> devices;
  /// Bytes used per host, of its memory and of its disks.
  std::vector<int64_t> hostBytes;
  std::vector<int64_t> diskBytes;
};

/// Memory of a plan's shards; with snapshots at the worst of them (those
/// of Memory.h expect a problem without: summarized()). Shards of unknown
/// tables or devices are ignored (verify() reports them).
MemoryReport planMemory(const ShardingProblem &problem,
                        std::span<const Shard> shards);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_PLANMEMORY_H
