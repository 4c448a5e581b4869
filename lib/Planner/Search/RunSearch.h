//===- RunSearch.h - One algorithm, from problem to result ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_RUNSEARCH_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_RUNSEARCH_H

#include "Units/Outcome.h"

#include <functional>
#include <vector>

namespace neuroshard {

/// The algorithm of the context's options.
Outcome runAlgorithm(const SearchContext &context,
                     const std::vector<UnitPtr> &units);

/// search() with `run` for its algorithm, for input that was checked. Options'
/// warm start is ignored.
tl::expected<SearchResult, Diagnosis> runSearch(const ShardingProblem &problem,
                                                const CostModel &model,
                                                const SearchOptions &options,
                                                const SearchRun &run);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_RUNSEARCH_H
