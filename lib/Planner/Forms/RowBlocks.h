//===- RowBlocks.h - Tables cut row-wise to save time -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_ROWBLOCKS_H
#define NEUROSHARD_LIB_PLANNER_FORMS_ROWBLOCKS_H

#include "Units/UnitOperations.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// For targets that run rows only in even blocks over a whole group of devices
/// (see rowBlocks()), which small steps never reach: the units with tables cut
/// that way which make greedy placements cheaper, in several choices, each
/// cheaper than the one before. None when no cut helps, and for targets that
/// cut rows anywhere. `evaluations`: those looked at are added.
std::vector<std::vector<UnitPtr>>
rowBlockChoices(const SearchContext &context, const std::vector<UnitPtr> &units,
                int64_t &evaluations);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_ROWBLOCKS_H
