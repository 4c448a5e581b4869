//===- RowGroups.h - A group of devices for each row-wise table -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_ROWGROUPS_H
#define NEUROSHARD_LIB_PLANNER_FORMS_ROWGROUPS_H

#include "neuroshard/Planner/CostModel.h"

#include <optional>

namespace neuroshard {

/// The problem with a group chosen for each table that is worth cutting and may
/// be cut by rows inside one innermost group only: it is pinned to that group,
/// where any cut by rows then follows the rules. Plans of it are plans of the
/// given problem, but not the other way round. Nothing where no table is like
/// that, or the target does not run such cuts. Expects a problem that check()
/// accepts.
std::optional<ShardingProblem> withRowGroups(const ShardingProblem &problem,
                                             const CostModel &model);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_ROWGROUPS_H
