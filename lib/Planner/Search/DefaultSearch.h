//===- DefaultSearch.h - Initial solutions, then local search ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_DEFAULTSEARCH_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_DEFAULTSEARCH_H

#include "Units/SearchOutcome.h"

#include <vector>

namespace neuroshard {

/// Algorithm::Default: makes many initial solutions and improves the best ones
/// by local search.
SearchOutcome searchDefault(const SearchContext &context,
                            const std::vector<UnitPtr> &units);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_DEFAULTSEARCH_H
