//===- ChooseRoutes.h - Directly or by relay, table by table ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_CHOOSEROUTES_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_CHOOSEROUTES_H

#include "Units/SearchContext.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <optional>
#include <string>

namespace neuroshard {

/// Chooses the route of each table without shards written by hand, for the
/// lowest cost within memory. Expects a plan whose tables all go directly but
/// for those, and leaves one that verify() refuses as it is. A sentence on what
/// it brings, if it has sent some by relay.
std::optional<std::string> chooseRoutes(const SearchContext &context,
                                        ShardingPlan &plan);

/// The cost of the plan with the routes that chooseRoutes() would choose.
double costWithRoutesMs(const SearchContext &context, const ShardingPlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_CHOOSEROUTES_H
