//===- DriftingTables.cpp - Tables whose copies may drift -----------------===//

#include "DriftingTables.h"

using namespace neuroshard;

std::vector<bool>
neuroshard::tablesThatMayDrift(const ShardingProblem &problem) {
  std::vector<bool> mayDrift(problem.tables.size());
  for (const TableConstraint &constraint : problem.constraints.tables)
    if (constraint.syncEvery > 0)
      mayDrift[static_cast<size_t>(constraint.table)] = true;
  for (const Shard &shard : problem.constraints.fixedShards)
    if (shard.copiesDrift())
      mayDrift[static_cast<size_t>(problem.tableIndex(shard.table))] = true;
  return mayDrift;
}
