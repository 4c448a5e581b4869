//===- SnapshotInitialSolutions.h - Plans for single snapshots --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_SNAPSHOTINITIALSOLUTIONS_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_SNAPSHOTINITIALSOLUTIONS_H

#include "InitialSolutions.h"

namespace neuroshard {

/// For a problem with snapshots: adds to `solutions` the plan of `run` for
/// their summary, so that the result is never worse, and its plan for each
/// snapshot alone, where these fit the units. All these runs share `steps`
/// random edits.
void addSnapshotSolutions(const SearchContext &context,
                          const std::vector<UnitPtr> &units, int64_t steps,
                          const SearchRun &run,
                          std::vector<InitialSolution> &solutions,
                          SearchOutcome &outcome);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_SNAPSHOTINITIALSOLUTIONS_H
