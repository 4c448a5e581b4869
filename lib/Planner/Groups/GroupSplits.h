//===- GroupSplits.h - Parts of tables split evenly over groups -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_GROUPS_GROUPSPLITS_H
#define NEUROSHARD_LIB_PLANNER_GROUPS_GROUPSPLITS_H

#include "Units/SearchOutcome.h"

namespace neuroshard {

/// Splits each part of a table evenly over the devices of its group that may
/// hold the table, by rows, by columns or by both, whichever makes a step with
/// relays shortest, and adds them to `base`, which has what is placed already.
/// The device of a part is its group. None if no device there may hold one. The
/// plan may need too much memory.
std::optional<ShardingPlan> splitInGroups(const SearchContext &context,
                                          int groupSize,
                                          const ShardingPlan &base,
                                          std::span<const Shard> parts,
                                          int64_t &evaluations);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_GROUPS_GROUPSPLITS_H
