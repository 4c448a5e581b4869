//===- Explain.h - Sentences that explain a plan ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_EXPLAIN_EXPLAIN_H
#define NEUROSHARD_LIB_PLANNER_EXPLAIN_EXPLAIN_H

#include "Units/SearchState.h"

#include <string>
#include <vector>

namespace neuroshard {

/// One sentence per table that is cut or replicated, with what the opposite
/// would cost; of very many, the later ones in groups. `wholes`: the units
/// before any search.
std::vector<std::string> explainCuts(const SearchState &state,
                                     const std::vector<UnitPtr> &wholes);

/// The device that takes longest, and what on it does.
std::vector<std::string> explainBottleneck(const SearchState &state);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_EXPLAIN_EXPLAIN_H
