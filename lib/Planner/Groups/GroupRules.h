//===- GroupRules.h - Rules about devices, over groups of them --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_GROUPS_GROUPRULES_H
#define NEUROSHARD_LIB_PLANNER_GROUPS_GROUPRULES_H

#include "Units/SearchContext.h"

namespace neuroshard {

/// What pins, forbids, co-location and separation say where tables are placed
/// on groups of `groupSize` devices first. A plan that follows them may still
/// break a rule: not all are exact over groups.
class GroupRules {
public:
  GroupRules(const SearchContext &context, int groupSize)
      : context(context), groupSize(groupSize) {}

  /// Rules of the search over groups, each of which is a device there, in place
  /// of those about devices: a table may lie on groups with a device of its
  /// own, and is not on all of them.
  void restrictGroups(Constraints &outer) const;

  /// Rules of the search inside a group. sources: by number of an inner table,
  /// the table that it is a part of.
  void restrictInside(int group, std::span<const int> sources,
                      Constraints &inner) const;

  /// Adds parts of tables that are co-located or separate to the plan, each
  /// whole on one device of its group, and removes them from `parts`. False
  /// where no device may have one.
  bool placeWhole(std::vector<Shard> &parts, ShardingPlan &plan) const;

private:
  const SearchContext &context;
  int groupSize;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_GROUPS_GROUPRULES_H
