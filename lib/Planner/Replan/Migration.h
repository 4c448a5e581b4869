//===- Migration.h - Shards kept of a previous plan -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_REPLAN_MIGRATION_H
#define NEUROSHARD_LIB_PLANNER_REPLAN_MIGRATION_H

#include "neuroshard/Planner/Search.h"

#include <map>
#include <string>
#include <vector>

namespace neuroshard {

/// Shapes of a plan of other tables that make no sense whatever they were:
/// empty ranges, negative numbers, shards of a table that overlap.
Diagnostics checkPrevious(const ShardingPlan &previous);

/// The shards of a previous plan that today's problem can keep: of tables that
/// are still there with their dim, on devices that are still there. A table
/// that grew goes on in its last rows, one that shrank loses them; one that
/// comes out incomplete is left out. Tables with fixed shards are, too.
std::vector<Shard> shardsToKeep(const ShardingProblem &problem,
                                const ShardingPlan &previous);

/// What stays of a previous plan.
struct Kept {
  std::vector<Shard> shards;
  /// One sentence for each table that has a place in the previous plan that
  /// today's rules or memory do not allow.
  std::vector<std::string> released;
};

/// shardsToKeep() without the tables that break a rule or, the fewest that
/// will do, overfill a device.
Kept keepWhatServes(const ShardingProblem &problem, const CostModel &model,
                    const SearchOptions &options, const ShardingPlan &previous);

/// Without the smallest tables that make up this share of the bytes: room for
/// what finds none otherwise.
Kept keepLess(const ShardingProblem &problem, const Kept &kept, double share);

/// What moves between devices from one plan to the next: bytes, time, tables.
/// Rows that the previous plan does not have are new and do not move.
Migration migrationBetween(const ShardingProblem &problem,
                           const ShardingPlan &previous,
                           const ShardingPlan &next);

/// Names for the devices of a plan, so that as many bytes as possible stay
/// where they were. Only devices of one class, memory and place in the topology
/// take each other's names, and none does where constraints name devices.
std::vector<int> deviceNames(const ShardingProblem &problem,
                             const ShardingPlan &previous,
                             const ShardingPlan &plan);

/// Gives the pieces of each table that is cut along columns or rows those
/// ranges that leave most where it was; sizes and devices stay.
void fitRanges(const ShardingProblem &problem, const ShardingPlan &previous,
               ShardingPlan &plan);

/// Shards that are as they were get their old names.
void keepNames(const ShardingPlan &previous, ShardingPlan &plan);

/// Bytes of weights and optimizer state of part of a shard.
double storedBytes(const Table &table, int64_t rows, int64_t width,
                   int64_t shardWidth);

/// The shards of each table.
using ShardsOfTable = std::map<std::string_view, std::vector<const Shard *>>;
ShardsOfTable shardsByTable(const ShardingPlan &plan);

/// Rows and columns two shards share; 0 when none.
struct Overlap {
  int64_t rows = 0;
  int64_t columns = 0;
};
Overlap overlapOf(const Shard &a, const Shard &b);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_REPLAN_MIGRATION_H
