//===- InitialSolutions.h - Initial solutions of local search ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_INITIALSOLUTIONS_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_INITIALSOLUTIONS_H

#include "Units/Outcome.h"

#include <memory>
#include <string>
#include <vector>

namespace neuroshard {

/// How a start came about; solutions of one family resemble each other.
/// Period: planned for other statistics, see addSnapshotSolutions().
enum class Family {
  Columns,
  Rows,
  LessTraffic,
  Published,
  Whole,
  Replicas,
  RowBlocks,
  Compared,
  Period
};
constexpr size_t kFamilies = 9;

/// A complete placement.
struct InitialSolution {
  SearchState state;
  double costMs;
  std::string what;
  Family family;
  /// What it was cut out of.
  std::shared_ptr<const std::vector<UnitPtr>> wholes;
};

/// Places the units in many ways; all that fit, in the order in which they
/// were tried. When nothing fits and the target knows another form for the
/// table that found no room, `units` get it. `outcome` learns what was tried,
/// or the unit that found no room.
std::vector<InitialSolution> findInitialSolutions(const SearchContext &context,
                                                  std::vector<UnitPtr> &units,
                                                  Outcome &outcome);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_INITIALSOLUTIONS_H
