//===- RandomRestarts.h - Random restarts until a plan fits -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_RANDOMRESTARTS_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_RANDOMRESTARTS_H

#include "Units/Outcome.h"

#include <vector>

namespace neuroshard {

/// The default search's last resort: draws random forms and devices, again
/// and again, until they make a plan; gives up after a bounded number of tries.
void restartRandomly(const SearchContext &context,
                     const std::vector<UnitPtr> &initial, Outcome &outcome);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_RANDOMRESTARTS_H
