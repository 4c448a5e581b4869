//===- WarmStart.h - Planning from a previous plan --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_WARMSTART_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_WARMSTART_H

#include "neuroshard/Planner/Search.h"

namespace neuroshard {

/// search() with SearchOptions::warmStart. Tries the previous plan as far as it
/// is valid, better plans near it, and a plan from nothing; returns the one
/// whose cost + migration time / steps of the horizon is lowest.
tl::expected<SearchResult, PlanningError>
searchFromPrevious(const ShardingProblem &problem, const CostModel &model,
                   const SearchOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_WARMSTART_H
