//===- SnapshotInitialSolutions.h - Plans for snapshots ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_SNAPSHOTINITIALSOLUTIONS_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_SNAPSHOTINITIALSOLUTIONS_H

#include "InitialSolutions.h"

namespace neuroshard {

/// Of a problem with snapshots: `run`'s plan for their summary,
/// so that the result is never worse than that, and its plan for each snapshot
/// alone, all of which share `steps` random steps. Those that fit the units
/// are added to `solutions`.
void addSnapshotSolutions(const SearchContext &context,
                          const std::vector<UnitPtr> &units, int64_t steps,
                          const SearchRun &run,
                          std::vector<InitialSolution> &solutions,
                          Outcome &outcome);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_SNAPSHOTINITIALSOLUTIONS_H
