//===- Memory.h - Memory of shards and devices ------------------*- C++ -*-===//
///
/// \file
/// The terms, their formulas and sources are in docs/memory.md.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_PLANNER_MEMORY_H
#define NEUROSHARD_PLANNER_MEMORY_H

#include "neuroshard/Model/ShardingPlan.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace neuroshard {

/// Bytes by kind. A sum over the shards of a device plus deviceBaseMemory() is
/// the device's memory.
struct MemoryTerms {
  int64_t weightsBytes = 0;
  int64_t optimizerStateBytes = 0;
  int64_t idsBytes = 0;
  /// Alive in the forward phase / in the backward phase. Gradients that wait
  /// for the update of a later backward are in both.
  int64_t forwardBytes = 0;
  int64_t backwardBytes = 0;
  int64_t communicatorBytes = 0;
  int64_t denseReserveBytes = 0;
  int64_t fragmentationReserveBytes = 0;
  /// Of the host: weights and states in tier "dram", and on disk in tier "ssd".
  int64_t hostBytes = 0;
  int64_t diskBytes = 0;

  /// Static terms + the larger phase + reserves; what the host has not
  /// included.
  int64_t peakBytes() const;
  MemoryTerms &operator+=(const MemoryTerms &other);
  MemoryTerms &operator-=(const MemoryTerms &other);
  bool operator==(const MemoryTerms &) const = default;
};

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

/// "12.3 GiB", "4.0 MiB": for messages.
std::string formatBytes(int64_t bytes);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_MEMORY_H
