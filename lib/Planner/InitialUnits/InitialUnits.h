//===- InitialUnits.h - Units of a problem before any search ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_INITIALUNITS_INITIALUNITS_H
#define NEUROSHARD_LIB_PLANNER_INITIALUNITS_INITIALUNITS_H

#include "Units/UnitOperations.h"

#include <vector>

namespace neuroshard {

/// The units of a problem before any search: the shards written by hand, the
/// rest of each table in one piece, and tables that may not stay whole in their
/// first allowed form. An error when a rule cannot be met.
tl::expected<std::vector<UnitPtr>, PlanningError>
initialUnits(const SearchContext &context);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_INITIALUNITS_INITIALUNITS_H
