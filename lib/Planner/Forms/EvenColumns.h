//===- EvenColumns.h - Equal widths of a table on one device ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_EVENCOLUMNS_H
#define NEUROSHARD_LIB_PLANNER_FORMS_EVENCOLUMNS_H

#include "Units/SearchState.h"

namespace neuroshard {

/// The state with the column shards that a device has of one table in equal
/// widths, as target torchrec-1.9 needs them: joined, or cut again where the
/// table may not be whole. Those that cannot be equal are spread over devices
/// if there is room. Under other targets, and where nothing is to be done, the
/// state itself.
SearchState withEvenColumns(SearchState state);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_EVENCOLUMNS_H
