//===- Migration.h - Replanning: kept shards, bytes that move ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_REPLAN_MIGRATION_H
#define NEUROSHARD_LIB_PLANNER_REPLAN_MIGRATION_H

#include "neuroshard/Planner/Search.h"

#include <map>
#include <string>
#include <vector>

namespace neuroshard {

/// Errors of a previous plan that hold for any tables: empty ranges, negative
/// numbers, overlapping shards of a table.
Diagnostics checkPrevious(const ShardingPlan &previous);

/// The shards of a previous plan that today's problem can keep: those of tables
/// with the same dim, on devices that still exist. The last shards of a table
/// grow or shrink with its rows. Left out are tables that this leaves
/// incomplete and tables with fixed shards.
std::vector<Shard> shardsToKeep(const ShardingProblem &problem,
                                const ShardingPlan &previous);

/// The shards of a previous plan that stay.
struct Kept {
  std::vector<Shard> shards;
  /// One sentence for each table whose previous place today's rules or memory
  /// forbid.
  std::vector<std::string> released;
};

/// shardsToKeep() without tables that break a rule and without as few as
/// possible of those on overfull devices.
Kept keepWhatServes(const ShardingProblem &problem, const CostModel &model,
                    const SearchOptions &options, const ShardingPlan &previous);

/// `kept` without the smallest tables that make up this share of its bytes, to
/// make room for others.
Kept keepLess(const ShardingProblem &problem, const Kept &kept, double share);

/// The migration between devices from one plan to the next: bytes, time,
/// tables. Rows that the previous plan does not have are new and do not move.
Migration migrationBetween(const ShardingProblem &problem,
                           const ShardingPlan &previous,
                           const ShardingPlan &next);

/// New numbers for the devices of a plan, so that as many bytes as possible
/// stay where they were. Only devices of equal class, memory and place in the
/// topology swap numbers, and none does where constraints name devices.
std::vector<int> deviceNames(const ShardingProblem &problem,
                             const ShardingPlan &previous,
                             const ShardingPlan &plan);

/// Reorders the ranges of each table's column or row shards so that the most
/// bytes stay where they were; sizes and devices stay.
void fitRanges(const ShardingProblem &problem, const ShardingPlan &previous,
               ShardingPlan &plan);

/// Gives shards that did not change their old names. Those written by hand keep
/// the names that the problem gives them.
void keepNames(const ShardingProblem &problem, const ShardingPlan &previous,
               ShardingPlan &plan);

/// Bytes of weights and optimizer state of `rows` x `width` elements of a shard
/// that is `shardWidth` wide.
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
