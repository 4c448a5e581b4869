//===- SpilledRows.h - Rows that a row cache has no place for ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_MEMORY_SPILLEDROWS_H
#define NEUROSHARD_LIB_PLANNER_MEMORY_SPILLEDROWS_H

#include <cstdint>

namespace neuroshard {

/// Expected number of rows that find their set full, rounded up, where `used`
/// rows are in use at a time in a cache of `cacheRows`. Rows fall into sets at
/// random: their number in a set is Poisson distributed.
int64_t spilledRows(int64_t used, int64_t cacheRows);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_MEMORY_SPILLEDROWS_H
