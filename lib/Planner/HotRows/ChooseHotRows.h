//===- ChooseHotRows.h - Copies of the rows that are used most --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_HOTROWS_CHOOSEHOTROWS_H
#define NEUROSHARD_LIB_PLANNER_HOTROWS_CHOOSEHOTROWS_H

#include "Units/SearchContext.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <optional>
#include <string>

namespace neuroshard {

/// Gives the first rows of tables whose rows are in the order of their use a
/// copy on each device or in each group of devices, and places their other rows
/// anew, where that lowers the cost within memory; moves borders between blocks
/// of their rows by the lookups of these. A plan that breaks a rule becomes one
/// that breaks none, if one is found. Only of tables that may be replicated and
/// have no shards written by hand. A sentence on what it brings, if it has
/// changed the plan.
std::optional<std::string> chooseHotRows(const SearchContext &context,
                                         ShardingPlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_HOTROWS_CHOOSEHOTROWS_H
