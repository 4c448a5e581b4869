//===- StoredBytes.h - Weights and state of rows in bytes -------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_STOREDBYTES_H
#define NEUROSHARD_MODEL_STOREDBYTES_H

#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Model/Table.h"

#include <cstdint>

namespace neuroshard {

/// Bytes of weights and optimizer state of `rows` x `width` elements of a shard
/// that is `shardWidth` wide, without padding. One number per row of the shard
/// counts by the share of its columns.
inline double storedBytes(const Table &table, int64_t rows, int64_t width,
                          int64_t shardWidth) {
  double elements = static_cast<double>(rows) * static_cast<double>(width);
  double bytes = static_cast<double>(rows) *
                 static_cast<double>(rowBytes(width, table.elementType));
  OptimizerStates states = optimizerStates(table.optimizer);
  return bytes + states.perElement * 4 * elements +
         states.perRow * 4 * elements / static_cast<double>(shardWidth);
}

/// The same for the first `rows` rows of a table, or all.
inline double storedBytes(const Table &table, int64_t rows) {
  return storedBytes(table, rows, table.dim, table.dim);
}
inline double storedBytes(const Table &table) {
  return storedBytes(table, table.rows);
}

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_STOREDBYTES_H
