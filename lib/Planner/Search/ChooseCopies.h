//===- ChooseCopies.h - A copy of a table in each group ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_CHOOSECOPIES_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_CHOOSECOPIES_H

#include "Units/SearchContext.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <optional>
#include <string>

namespace neuroshard {

/// Gives tables a copy in each group of devices, such as a node, where that
/// lowers the cost within memory: ids, results and gradients then stay in the
/// group, and copies exchange sums of rows. Only tables that may be replicated
/// and have no shards written by hand. A sentence on what it brings, if it has
/// changed the plan.
std::optional<std::string> chooseCopies(const SearchContext &context,
                                        ShardingPlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_CHOOSECOPIES_H
