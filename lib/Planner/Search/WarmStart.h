//===- WarmStart.h - Planning from a previous plan --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_WARMSTART_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_WARMSTART_H

#include "neuroshard/Planner/Search.h"

namespace neuroshard {

/// search() with SearchOptions::warmStart: the previous plan as far as it
/// serves, better plans near it, and a plan made afresh; the one that is
/// cheapest with the time of moving spread over the horizon.
tl::expected<SearchResult, Diagnosis>
searchFromPrevious(const ShardingProblem &problem, const CostModel &model,
                   const SearchOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_WARMSTART_H
