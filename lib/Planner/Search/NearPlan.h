//===- NearPlan.h - Better plans near one in use ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_NEARPLAN_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_NEARPLAN_H

#include "Units/SearchOutcome.h"

#include <vector>

namespace neuroshard {

/// The placement of a plan. No state if the plan is not made of these units.
SearchOutcome placeAsPlanned(const SearchContext &context,
                             const std::vector<UnitPtr> &units,
                             const ShardingPlan &plan);

/// Improves a plan by edits that each save more per training step than moving
/// their bytes costs at `msPerByte`. Tables that `previous` does not have move
/// at no cost. No state if the plan is not made of these units.
SearchOutcome searchNear(const SearchContext &context,
                         const std::vector<UnitPtr> &units,
                         const ShardingPlan &plan, const ShardingPlan &previous,
                         double msPerByte);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_NEARPLAN_H
