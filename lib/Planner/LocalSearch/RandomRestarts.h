//===- RandomRestarts.h - Random restarts until a plan fits -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_RANDOMRESTARTS_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_RANDOMRESTARTS_H

#include "Units/SearchOutcome.h"

#include <vector>

namespace neuroshard {

/// The last resort of the default search: draws random forms and devices until
/// they make a plan, or a bounded number of tries is used up.
void restartRandomly(const SearchContext &context,
                     const std::vector<UnitPtr> &initial,
                     SearchOutcome &outcome,
                     Restarts restarts = Restarts::Many);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_RANDOMRESTARTS_H
