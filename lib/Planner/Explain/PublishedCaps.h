//===- PublishedCaps.h - Caps that leave no plan ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_EXPLAIN_PUBLISHEDCAPS_H
#define NEUROSHARD_LIB_PLANNER_EXPLAIN_PUBLISHEDCAPS_H

#include "Units/SearchOutcome.h"

#include <optional>
#include <vector>

namespace neuroshard {

/// Why the published search found nothing, if its caps are the reason.
std::optional<PlanningError> diagnoseCaps(const SearchContext &context,
                                          const std::vector<UnitPtr> &units);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_EXPLAIN_PUBLISHEDCAPS_H
