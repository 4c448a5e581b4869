//===- SearchOutcome.h - Result of a search algorithm -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_SEARCHOUTCOME_H
#define NEUROSHARD_LIB_PLANNER_UNITS_SEARCHOUTCOME_H

#include "SearchState.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

/// What a search algorithm returns: a placement, or why there is none.
struct SearchOutcome {
  /// Complete and within memory; nothing when the search failed.
  std::optional<SearchState> state;
  std::vector<std::string> explanation;
  std::vector<std::string> tried;
  std::string stopReason;
  /// A better plan was found that breaks a rule.
  bool brokeRule = false;
  int64_t evaluations = 0;
  /// When the search failed: the last unit that fitted on no device, if known.
  UnitPtr blocking;
};

/// A search algorithm: places the units of a problem.
using SearchRun = std::function<SearchOutcome(const SearchContext &,
                                              const std::vector<UnitPtr> &)>;

/// Tries of random forms and devices where a search finds no plan: few for one
/// of several searches that may have one.
enum class Restarts { Few, Many };

/// "1.234 ms".
std::string formatMs(double ms);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_SEARCHOUTCOME_H
