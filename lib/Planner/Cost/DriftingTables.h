//===- DriftingTables.h - Tables whose copies may drift ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_DRIFTINGTABLES_H
#define NEUROSHARD_LIB_PLANNER_COST_DRIFTINGTABLES_H

#include "neuroshard/Model/ShardingProblem.h"

#include <vector>

namespace neuroshard {

/// By table: whether copies of it may drift, by a constraint on it or as shards
/// written by hand do.
std::vector<bool> tablesThatMayDrift(const ShardingProblem &problem);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_DRIFTINGTABLES_H
