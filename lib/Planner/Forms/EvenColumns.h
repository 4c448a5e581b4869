//===- EvenColumns.h - Equal widths of a table on one device ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_EVENCOLUMNS_H
#define NEUROSHARD_LIB_PLANNER_FORMS_EVENCOLUMNS_H

#include "Units/SearchState.h"

namespace neuroshard {

/// The state with equal widths of the column shards that a device has of one
/// table, as target torchrec-1.9 needs them: the shards are joined, or cut
/// again where the table may not be whole. Shards that cannot be equal are
/// spread over devices if there is room. Returns the state itself under other
/// targets and when all widths are equal.
SearchState withEvenColumns(SearchState state);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_EVENCOLUMNS_H
