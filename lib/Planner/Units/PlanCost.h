//===- PlanCost.h - Cost of a plan without a search state -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_PLANCOST_H
#define NEUROSHARD_LIB_PLANNER_UNITS_PLANCOST_H

#include "SearchContext.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/DeviceLoad.h"

#include <vector>

namespace neuroshard {

/// The cost of a plan that verify() accepts, with the routes that its shards
/// have: the mean over the snapshots, if there are some. As evaluate() gives
/// it, without the bytes of its artifact.
double planCostMs(const SearchContext &context, const ShardingPlan &plan);
/// The same, and how long each device computes.
double planCostMs(const SearchContext &context, const ShardingPlan &plan,
                  std::vector<double> &computeMs);

/// How many tables have shards that isCopied(): no search state knows those
/// copies.
int countCopiedTables(const SearchContext &context, const ShardingPlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_PLANCOST_H
