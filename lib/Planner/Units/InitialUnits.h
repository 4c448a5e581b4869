//===- InitialUnits.h - Units of a problem before any search ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_INITIALUNITS_H
#define NEUROSHARD_LIB_PLANNER_UNITS_INITIALUNITS_H

#include "UnitOperations.h"

#include <vector>

namespace neuroshard {

/// The units of a problem before any search: what was written by hand, the
/// rest of each table whole, and tables whose allowed kinds leave no choice in
/// their one form. A diagnosis when a rule cannot be met.
tl::expected<std::vector<UnitPtr>, Diagnosis>
initialUnits(const SearchContext &context);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_INITIALUNITS_H
