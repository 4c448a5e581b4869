//===- GroupPins.h - A group of devices for each row-wise table -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_GROUPPINS_H
#define NEUROSHARD_LIB_PLANNER_FORMS_GROUPPINS_H

#include "neuroshard/Planner/CostModel.h"

#include <optional>

namespace neuroshard {

/// The problem with a group chosen for each table that is worth cutting and may
/// be cut by rows only inside one innermost group: the table is pinned to that
/// group, where every cut by rows follows the rules. Each plan of the result is
/// a plan of the given problem, but not the reverse. Nothing if there is no
/// such table or the target does not run such cuts. Expects a problem that
/// check() accepts.
std::optional<ShardingProblem> withGroupPins(const ShardingProblem &problem,
                                             const CostModel &model);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_GROUPPINS_H
