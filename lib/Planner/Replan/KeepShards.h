//===- KeepShards.h - Shards of a previous plan that may stay ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_REPLAN_KEEPSHARDS_H
#define NEUROSHARD_LIB_PLANNER_REPLAN_KEEPSHARDS_H

#include "neuroshard/Planner/Search.h"

#include <string>
#include <vector>

namespace neuroshard {

/// Errors of a previous plan that hold for any tables: empty ranges, negative
/// numbers, overlapping shards of a table.
Diagnostics checkPrevious(const ShardingPlan &previous);

/// The plan with one device for each shard that has copies without being
/// replicated: searches place no such copies.
ShardingPlan withoutCopies(ShardingPlan previous);

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

/// Gives shards that did not change their old names. Those written by hand keep
/// the names that the problem gives them.
void keepNames(const ShardingProblem &problem, const ShardingPlan &previous,
               ShardingPlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_REPLAN_KEEPSHARDS_H
