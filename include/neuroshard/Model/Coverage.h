//===- Coverage.h - Exact cover of a table by shards ------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_COVERAGE_H
#define NEUROSHARD_MODEL_COVERAGE_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <vector>

namespace neuroshard {

/// "rows [0, 10) cols [0, 4)".
std::string formatRange(const Shard &shard);

/// Ranges outside the table, empty ranges, inner column boundaries that are
/// not multiples of 4, devices that do not exist or repeat.
void checkShardShape(const Table &table, const Shard &shard, int deviceCount,
                     const std::string &where, Diagnostics &errors);

/// A shard on several devices must be a whole table, on all devices: of fixed
/// shards, and of targets that have no other copies.
void checkReplica(const Table &table, const Shard &shard, int deviceCount,
                  const std::string &where, Diagnostics &errors);

/// Pairs of shards that overlap. Shapes must be sound. O(n log n).
void checkOverlap(const Table &table, const std::vector<const Shard *> &shards,
                  Diagnostics &errors);

/// The first rows and columns that no shard covers. Shards must not overlap.
/// O(n log n) when there is one, O(n) otherwise.
void checkGaps(const Table &table, const std::vector<const Shard *> &shards,
               Diagnostics &errors);

/// The error for a shard in tier "dram" with a cache on a device whose memory
/// is that of its host, a CPU; "" for GPUs.
std::string hostTierError(const Topology &topology, int device);

/// A tier that the target does not run, or not on these devices, and a cache
/// that does not fit (cacheError).
void checkTier(const ShardingProblem &problem, const Shard &shard,
               const std::string &where, Diagnostics &errors);

/// Shards of one table that differ in their route, and relays that the target
/// has none of or that no pooled result of the table could take.
void checkRoutes(const ShardingProblem &problem, size_t table,
                 const std::vector<const Shard *> &shards, Diagnostics &errors);

/// Why copies of a table cannot drift, however it is cut; "" if they can.
std::string driftError(const ShardingProblem &problem, size_t table);

/// What is wrong with sync_every of the shards of one table: syncError(),
/// shards that differ in it or in their number of copies, driftError(), and
/// norms that columns exchange.
void checkSync(const ShardingProblem &problem, size_t table,
               const std::vector<const Shard *> &shards, Diagnostics &errors);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_COVERAGE_H
