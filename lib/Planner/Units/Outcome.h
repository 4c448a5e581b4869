//===- Outcome.h - Result of a search algorithm -----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_OUTCOME_H
#define NEUROSHARD_LIB_PLANNER_UNITS_OUTCOME_H

#include "SearchState.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

/// What an algorithm returns: a placement, or why there is none.
struct Outcome {
  /// Complete and within memory; nothing when the search failed.
  std::optional<SearchState> state;
  std::vector<std::string> explanation;
  std::vector<std::string> tried;
  std::string stopReason;
  int64_t evaluations = 0;
  /// When it failed: the last unit that found no place, if known.
  UnitPtr blocking;
};

/// What turns units into an outcome.
using SearchRun =
    std::function<Outcome(const SearchContext &, const std::vector<UnitPtr> &)>;

/// "1.234 ms".
std::string formatMs(double ms);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_OUTCOME_H
