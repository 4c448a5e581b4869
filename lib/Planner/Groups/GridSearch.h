//===- GridSearch.h - Even grids of tables over groups ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_GROUPS_GRIDSEARCH_H
#define NEUROSHARD_LIB_PLANNER_GROUPS_GRIDSEARCH_H

#include "Units/SearchContext.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <optional>

namespace neuroshard {

/// A plan in which each table that `plan` does not replicate is cut evenly over
/// groups, and each part evenly over the devices of its group; all results go
/// by relay. None where relays are not used, `plan` has copies on some devices,
/// or rules say where tables may lie. The plan may break rules and need too
/// much memory. Adds to `evaluations`.
std::optional<ShardingPlan> searchGrids(const SearchContext &context,
                                        const ShardingPlan &plan, double costMs,
                                        int64_t &evaluations);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_GROUPS_GRIDSEARCH_H
