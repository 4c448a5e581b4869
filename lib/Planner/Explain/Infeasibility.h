//===- Infeasibility.h - Why a problem has no plan --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_EXPLAIN_INFEASIBILITY_H
#define NEUROSHARD_LIB_PLANNER_EXPLAIN_INFEASIBILITY_H

#include "Units/SearchState.h"

#include <optional>
#include <vector>

namespace neuroshard {

/// A limit that no plan made of these units, however cut, can meet; nothing
/// when none was found.
std::optional<Diagnosis> findImpossible(const SearchContext &context,
                                        const std::vector<UnitPtr> &units);

/// An algorithm found nothing, though no limit is provably broken.
/// `blocking`: the last unit that found no place, if known.
Diagnosis diagnoseFailure(const SearchContext &context,
                          const std::vector<UnitPtr> &units,
                          const Unit *blocking);

/// The input itself is wrong.
Diagnosis diagnoseBadInput(const Diagnostics &errors);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_EXPLAIN_INFEASIBILITY_H
