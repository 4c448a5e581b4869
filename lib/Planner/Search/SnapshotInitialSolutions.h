//===- SnapshotInitialSolutions.h - Starts made for one period each ---------*-
// C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_SNAPSHOTINITIALSOLUTIONS_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_SNAPSHOTINITIALSOLUTIONS_H

#include "InitialSolutions.h"

namespace neuroshard {

/// Of a problem with snapshots: the default search's plan for their summary,
/// so that the result is never worse than that, and its plan for each snapshot
/// alone, all of which share `steps` random steps. Those that fit the units
/// come to `starts`.
void addPeriodStarts(const SearchContext &context,
                     const std::vector<UnitPtr> &units, int64_t steps,
                     std::vector<Start> &starts, Outcome &outcome);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_SNAPSHOTINITIALSOLUTIONS_H
