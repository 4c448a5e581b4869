//===- RowOrder.h - Tables whose rows are in the order of use ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_HOTROWS_ROWORDER_H
#define NEUROSHARD_LIB_PLANNER_HOTROWS_ROWORDER_H

#include "neuroshard/Model/ShardingProblem.h"

namespace neuroshard {

/// Whether the statistics of some table, also of a snapshot, say what its first
/// rows get.
bool hasRowsByUse(const ShardingProblem &problem);

/// The problem with rows in no known order: ids go to parts of a table in
/// proportion to their rows. Local search cuts tables so, since it gives pieces
/// their rows only at the end.
ShardingProblem withoutRowOrder(const ShardingProblem &problem);

/// The same, in which tables with an order of rows are cut by columns alone:
/// blocks of their rows that fit with even shares of the ids may not fit with
/// theirs.
ShardingProblem withoutRowCuts(const ShardingProblem &problem);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_HOTROWS_ROWORDER_H
