//===- RowSort.h - Groups the ids of a step by row -------------*- C++ -*-===//
//
// The sort is stable, so that the gradients of a row are added in the order of
// its ids.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_ROWSORT_H
#define NEUROSHARD_LIB_RUNTIME_CPU_ROWSORT_H

#include "Host/BufferPool.h"

namespace neuroshard::runtime {

/// The ids of one shard in one step, grouped by row.
struct SortedRows {
  Buffer rows;     ///< i64 [numRows], ascending and distinct.
  Buffer segments; ///< i64 [numRows + 1], first id of each row in `order`.
  Buffer order;    ///< u32 [numIds], numbers of the ids, by row.
  int64_t numRows = 0;
  int64_t numIds = 0;
};

/// Sort key of one id: its row in the upper half, its number in the lower.
using RowKey = uint64_t;
inline RowKey makeRowKey(uint64_t row, uint64_t number) {
  return row << 32 | number;
}

/// Sorts `count` keys that are ordered by number; rows are below `numRows`,
/// which is at most 2^32. The contents of `keys` are lost. Buffers have room
/// for `room` ids: with those of padding, whose number only the sort knows, so
/// that their sizes follow from the numbers of ids.
SortedRows sortRows(BufferPool &buffers, RowKey *keys, int64_t count,
                    int64_t room, int64_t numRows);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_ROWSORT_H
