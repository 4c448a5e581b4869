//===- LookupShares.h - Share of the lookups that rows get ------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_LOOKUPSHARES_H
#define NEUROSHARD_MODEL_LOOKUPSHARES_H

#include "neuroshard/Model/Table.h"

#include <cstdint>

namespace neuroshard {

/// Share of the lookups that the hottest `rowShare` of the rows get: along the
/// curve of the statistics, on lines between its points; without one every row
/// gets as many.
double lookupShareOf(const Table &table, double rowShare);

/// Whether the statistics say what the first rows of a table get.
bool hasRowsByUse(const Table &table);

/// Share of the lookups that rows [begin, end) get: by that curve where the
/// rows are in the order of their use; else in proportion to the rows, since
/// nothing says which of them are hot.
double lookupShareOfRows(const Table &table, int64_t begin, int64_t end);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_LOOKUPSHARES_H
