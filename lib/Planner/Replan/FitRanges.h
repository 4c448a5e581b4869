//===- FitRanges.h - Ranges of equal pieces that move least -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_REPLAN_FITRANGES_H
#define NEUROSHARD_LIB_PLANNER_REPLAN_FITRANGES_H

#include "neuroshard/Model/ShardingPlan.h"

namespace neuroshard {

/// Reorders the ranges of each table's column or row shards so that the most
/// bytes stay where they were; sizes and devices stay.
void fitRanges(const ShardingProblem &problem, const ShardingPlan &previous,
               ShardingPlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_REPLAN_FITRANGES_H
