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

ShardingProblem neuroshard::withoutRowCuts(const ShardingProblem &problem) {
  ShardingProblem result = withoutRowOrder(problem);
  std::vector<TableConstraint> &constraints = result.constraints.tables;
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    if (!hasRowsByUse(problem.tables[i]))
      continue;
    int table = static_cast<int>(i);
    auto found = std::ranges::find(constraints, table, &TableConstraint::table);
    if (found == constraints.end())
      found = constraints.insert(found, TableConstraint{.table = table});
    std::vector<ShardingKind> kinds = {ShardingKind::TableWise,
                                       ShardingKind::ColumnWise,
                                       ShardingKind::Replicated};
    if (!found->allowedKinds.empty())
      std::erase_if(kinds, [&](ShardingKind kind) {
        return std::ranges::find(found->allowedKinds, kind) ==
               found->allowedKinds.end();
      });
    if (!kinds.empty())
      found->allowedKinds = kinds;
  }
  return result;
}
