//===- SearchTiers.h - Searches that may use lower tiers --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOWERTIERS_SEARCHTIERS_H
#define NEUROSHARD_LIB_PLANNER_LOWERTIERS_SEARCHTIERS_H

#include "Units/SearchOutcome.h"
#include "neuroshard/Planner/Search.h"

#include <functional>

namespace neuroshard {

/// A search that leaves tables in the tiers that the problem gives them.
using TierlessSearch = std::function<tl::expected<SearchResult, PlanningError>(
    const ShardingProblem &, const SearchOptions &, Restarts)>;

/// The result of `search`; where device memory does not hold all, with tables
/// in SearchOptions::lowerTiers. Explains tables in lower tiers. An error says
/// what they would need, or that they would help if they were allowed.
tl::expected<SearchResult, PlanningError>
searchTiers(const ShardingProblem &problem, const CostModel &model,
            const SearchOptions &options, const TierlessSearch &search);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOWERTIERS_SEARCHTIERS_H
