//===- AlgorithmRun.h - One algorithm, from problem to result ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_ALGORITHMRUN_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_ALGORITHMRUN_H

#include "Units/SearchOutcome.h"

#include <functional>
#include <vector>

namespace neuroshard {

/// Runs the algorithm that the context's options name.
SearchOutcome runAlgorithm(const SearchContext &context,
                           const std::vector<UnitPtr> &units,
                           Restarts restarts = Restarts::Many);

/// search() with `run` as the algorithm, for checked input. Ignores the warm
/// start of the options.
tl::expected<SearchResult, PlanningError>
runSearch(const ShardingProblem &problem, const CostModel &model,
          const SearchOptions &options, const SearchRun &run);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_ALGORITHMRUN_H
