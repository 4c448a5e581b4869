//===- FetchLoad.h - Transfers between row caches and tiers -----*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_FETCHLOAD_H
#define NEUROSHARD_PLANNER_FETCHLOAD_H

#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Model/Target.h"

#include <cstdint>

namespace neuroshard {

/// What a step moves between the row caches of shards and the tiers where these
/// lie, in the mean of the steps after the caches have filled.
struct FetchLoad {
  /// Rows that batches use and caches lack.
  double rows = 0;
  /// Bytes read from and written to the memory of hosts.
  double hostReadBytes = 0;
  double hostWriteBytes = 0;
  /// Reads and writes of disks, and the bytes of the blocks that they move.
  double diskTransfers = 0;
  double diskBytes = 0;

  bool operator==(const FetchLoad &) const = default;
};

/// Of `rows` rows that come from `tier` ("dram" or "ssd"), for each of which
/// another, of the same size, leaves the cache and is written back, if an
/// update has changed it. A disk moves blocks of kDiskBlockBytes; the blocks
/// that a write changes a part of are read before it (docs/tiers.md).
FetchLoad fetchOf(Tier tier, double rows, int64_t recordBytes, StepMode mode);

inline constexpr int64_t kDiskBlockBytes = 4096;

/// load += sign x other.
inline void addFetches(FetchLoad &load, const FetchLoad &other, double sign) {
  load.rows += sign * other.rows;
  load.hostReadBytes += sign * other.hostReadBytes;
  load.hostWriteBytes += sign * other.hostWriteBytes;
  load.diskTransfers += sign * other.diskTransfers;
  load.diskBytes += sign * other.diskBytes;
}

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_FETCHLOAD_H
