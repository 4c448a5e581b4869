//===- NestedSearch.h - Searches inside a search ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_INITIALUNITS_NESTEDSEARCH_H
#define NEUROSHARD_LIB_PLANNER_INITIALUNITS_NESTEDSEARCH_H

#include "Units/SearchOutcome.h"

namespace neuroshard {

/// The options of search `done` of `count` inside another, all of which may
/// take `deadlineShare` of its deadline together.
SearchOptions optionsWithin(const SearchContext &context, double deadlineShare,
                            size_t done, size_t count);

/// The plan that `run` finds for another problem, if it finds one; adds to
/// `evaluations`.
std::optional<ShardingPlan> planFor(const ShardingProblem &problem,
                                    const CostModel &model,
                                    const SearchOptions &options,
                                    const SearchRun &run, RowWidths widths,
                                    int64_t &evaluations);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_INITIALUNITS_NESTEDSEARCH_H
