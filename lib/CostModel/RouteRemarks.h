//===- RouteRemarks.h - Remarks on relays without effect --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_ROUTEREMARKS_H
#define NEUROSHARD_LIB_COSTMODEL_ROUTEREMARKS_H

#include "neuroshard/Model/ShardingPlan.h"

#include <string>
#include <vector>

namespace neuroshard {

/// Adds a remark for each table whose route is relay although its results do
/// not travel, and one for all where the topology has no relays.
void addRouteRemarks(const ShardingProblem &problem, const ShardingPlan &plan,
                     std::vector<std::string> &remarks);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_ROUTEREMARKS_H
