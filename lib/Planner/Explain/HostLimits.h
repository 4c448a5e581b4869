//===- HostLimits.h - Lower tiers that no host has room for -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_EXPLAIN_HOSTLIMITS_H
#define NEUROSHARD_LIB_PLANNER_EXPLAIN_HOSTLIMITS_H

#include "Units/SearchContext.h"
#include "Units/Unit.h"

#include <optional>
#include <vector>

namespace neuroshard {

/// Whether shards in lower tiers that are written by hand need more than a host
/// has, or all such shards more than all hosts together.
std::optional<PlanningError> checkHosts(const SearchContext &context,
                                        const std::vector<UnitPtr> &units);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_EXPLAIN_HOSTLIMITS_H
