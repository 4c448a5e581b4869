//===- Migration.h - Bytes that move between two plans ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_REPLAN_MIGRATION_H
#define NEUROSHARD_LIB_PLANNER_REPLAN_MIGRATION_H

#include "neuroshard/Planner/Search.h"

#include <map>
#include <string>
#include <vector>

namespace neuroshard {

/// The migration between devices from one plan to the next: bytes, time,
/// tables. Rows that the previous plan does not have are new and do not move.
Migration migrationBetween(const ShardingProblem &problem,
                           const ShardingPlan &previous,
                           const ShardingPlan &next);

/// The shards of each table.
using ShardsOfTable = std::map<std::string_view, std::vector<const Shard *>>;
ShardsOfTable shardsByTable(const ShardingPlan &plan);

/// The dim of a table that these shards cover.
int64_t coveredDim(const std::vector<const Shard *> &shards);

/// Rows and columns two shards share; 0 when none.
struct Overlap {
  int64_t rows = 0;
  int64_t columns = 0;
};
Overlap overlapOf(const Shard &a, const Shard &b);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_REPLAN_MIGRATION_H
