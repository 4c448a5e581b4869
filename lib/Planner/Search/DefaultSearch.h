//===- DefaultSearch.h - Initial solutions, then local search ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_DEFAULTSEARCH_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_DEFAULTSEARCH_H

#include "Units/Outcome.h"

#include <vector>

namespace neuroshard {

/// Many initial solutions, the best of which the local search improves.
Outcome searchDefault(const SearchContext &context,
                      const std::vector<UnitPtr> &units);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_DEFAULTSEARCH_H
