//===- NearPlan.h - Better plans near one in use ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_NEARPLAN_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_NEARPLAN_H

#include "Units/Outcome.h"

#include <vector>

namespace neuroshard {

/// A plan as it is. No state when it is not made of these units.
Outcome placeAsPlanned(const SearchContext &context,
                       const std::vector<UnitPtr> &units,
                       const ShardingPlan &plan);

/// Steps away from a plan, each of which saves more per step of training than
/// moving its bytes costs, at so many milliseconds per byte; tables that
/// `previous` lacks move for nothing. No state when the plan is not made of
/// these units.
Outcome searchNear(const SearchContext &context,
                   const std::vector<UnitPtr> &units, const ShardingPlan &plan,
                   const ShardingPlan &previous, double msPerByte);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_NEARPLAN_H
