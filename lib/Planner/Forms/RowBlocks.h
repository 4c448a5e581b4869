//===- RowBlocks.h - Tables cut row-wise to save time -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_ROWBLOCKS_H
#define NEUROSHARD_LIB_PLANNER_FORMS_ROWBLOCKS_H

#include "Units/UnitOperations.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// For targets that run row shards only as even blocks over a whole group of
/// devices (see rowBlocks()), a form that local search does not reach: the
/// units with some tables cut that way, in several choices, for each of which a
/// greedy placement is cheaper than for the one before. None when no cut helps,
/// and for targets that cut rows anywhere. Adds the placements tried to
/// `evaluations`.
std::vector<std::vector<UnitPtr>>
rowBlockChoices(const SearchContext &context, const std::vector<UnitPtr> &units,
                int64_t &evaluations);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_ROWBLOCKS_H
