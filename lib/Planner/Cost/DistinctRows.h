//===- DistinctRows.h - Distinct rows that lookups touch --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_DISTINCTROWS_H
#define NEUROSHARD_LIB_PLANNER_COST_DISTINCTROWS_H

#include "neuroshard/Model/Table.h"

namespace neuroshard {

/// Distinct rows that so many lookups of a table touch in a global batch of
/// `batch` samples, by the table's reuse histogram. Without one, ids are
/// uniform over the rows.
double distinctRows(const Table &table, double lookups, double batch);

/// Of the `unique` distinct rows that `lookups` touch in a shard of `rows`,
/// those that a cache of the hottest `cached` share of the rows misses. Where
/// some rows are hotter than others, each lookup that misses fetches at most
/// one row.
double missedRows(const Table &table, double cached, int64_t rows,
                  double lookups, double unique);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_DISTINCTROWS_H
