//===- Explain.h - Sentences that explain a plan ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_EXPLAIN_EXPLAIN_H
#define NEUROSHARD_LIB_PLANNER_EXPLAIN_EXPLAIN_H

#include "Units/SearchState.h"

#include <string>
#include <vector>

namespace neuroshard {

/// One sentence per table that is cut or replicated, with the cost of the
/// opposite; with many tables, later ones share sentences. `wholes`: the units
/// before any search.
std::vector<std::string> explainCuts(const SearchState &state,
                                     const std::vector<UnitPtr> &wholes);

/// Names the slowest device and the tables on it that take the most time.
std::vector<std::string> explainBottleneck(const SearchState &state);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_EXPLAIN_EXPLAIN_H
