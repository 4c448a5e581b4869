//===- InitialSolutions.h - Initial solutions of local search ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_INITIALSOLUTIONS_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_INITIALSOLUTIONS_H

#include "Units/SearchOutcome.h"

#include <memory>
#include <string>
#include <vector>

namespace neuroshard {

/// How an initial solution was made; solutions of one family resemble each
/// other. Grid: cut by rows and columns. Period: planned for one snapshot or
/// the summary, see addSnapshotSolutions(). Those that come first are improved
/// first.
enum class Family {
  Columns,
  Rows,
  LessTraffic,
  Grid,
  Published,
  Whole,
  Replicas,
  RowBlocks,
  Period,
  Compared
};
constexpr size_t kFamilies = 10;

/// A complete placement from which local search may start.
struct InitialSolution {
  SearchState state;
  double costMs;
  std::string what;
  Family family;
  /// The units from which it was cut.
  std::shared_ptr<const std::vector<UnitPtr>> wholes;
};

/// Places the units in many ways; returns all placements that fit, in the order
/// of trying. If none fits and the target has another form for the table that
/// found no room, `units` are changed to that form. `outcome` gets what was
/// tried, or the unit that found no room.
std::vector<InitialSolution> findInitialSolutions(const SearchContext &context,
                                                  std::vector<UnitPtr> &units,
                                                  SearchOutcome &outcome);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_INITIALSOLUTIONS_H
