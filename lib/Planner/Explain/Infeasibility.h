//===- Infeasibility.h - Reasons for a problem without a plan ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_EXPLAIN_INFEASIBILITY_H
#define NEUROSHARD_LIB_PLANNER_EXPLAIN_INFEASIBILITY_H

#include "Units/SearchState.h"

#include <optional>
#include <vector>

namespace neuroshard {

/// A limit that no plan of these units can keep, however they are cut; nothing
/// if none was found.
std::optional<PlanningError> findImpossible(const SearchContext &context,
                                            const std::vector<UnitPtr> &units);

/// The error when an algorithm found no plan, though no limit is proven to be
/// broken. `blocking`: the last unit that fitted on no device, if known.
PlanningError diagnoseFailure(const SearchContext &context,
                              const std::vector<UnitPtr> &units,
                              const Unit *blocking);

/// The error for input that check() refuses.
PlanningError diagnoseBadInput(const Diagnostics &errors);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_EXPLAIN_INFEASIBILITY_H
