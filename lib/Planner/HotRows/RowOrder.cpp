//===- RowOrder.cpp - Tables whose rows are in the order of use -----------===//

#include "RowOrder.h"

#include "neuroshard/Model/LookupShares.h"

#include <algorithm>

using namespace neuroshard;

bool neuroshard::hasRowsByUse(const ShardingProblem &problem) {
  auto ofTable = [](const Table &table) { return hasRowsByUse(table); };
  return std::ranges::any_of(problem.tables, ofTable) ||
         std::ranges::any_of(problem.snapshots, [](const Snapshot &snapshot) {
           return std::ranges::any_of(snapshot.tables,
                                      [](const TableStatistics &statistics) {
                                        return statistics.access.rowsByUse;
                                      });
         });
}

ShardingProblem neuroshard::withoutRowOrder(const ShardingProblem &problem) {
  ShardingProblem result = problem;
  for (Table &table : result.tables)
    if (table.access)
      table.access->rowsByUse = false;
  for (Snapshot &snapshot : result.snapshots)
    for (TableStatistics &statistics : snapshot.tables)
      statistics.access.rowsByUse = false;
  return result;
}
