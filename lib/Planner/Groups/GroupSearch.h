//===- GroupSearch.h - Over groups of devices, then inside each -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_GROUPS_GROUPSEARCH_H
#define NEUROSHARD_LIB_PLANNER_GROUPS_GROUPSEARCH_H

#include "Units/SearchOutcome.h"

namespace neuroshard {

/// How tables are placed on groups.
struct GroupSearchSettings {
  RowWidths widths = RowWidths::Free;
  /// Of the memory of a group that tables may take, since its devices are
  /// filled one by one later.
  double memoryShare = 1;
  /// Edits of the search over groups, and of those inside groups together.
  int64_t steps = 0;
};

/// Plans whose results are meant to go by relay, for devices in groups of one
/// size: `run` places the tables on groups as if each were one device; then
/// what a group got is split evenly over its devices, or placed on them by
/// `run`. None where relays are not used, devices differ, or shards are written
/// by hand; plans may break rules and need too much memory. Adds to
/// `evaluations`.
std::vector<ShardingPlan> searchByGroups(const SearchContext &context,
                                         const SearchRun &run,
                                         const GroupSearchSettings &settings,
                                         int64_t &evaluations);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_GROUPS_GROUPSEARCH_H
