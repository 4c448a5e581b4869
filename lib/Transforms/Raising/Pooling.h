//===- Pooling.h - Rows that become sums and means --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_POOLING_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_POOLING_H

#include "Found/FoundLookup.h"

#include <vector>

namespace neuroshard::raising {

/// The lookup that `found` becomes with the ops that use its rows, and, where
/// other ops use them too, `found` itself: rows are weighted, added up over the
/// last dimension of the ids, and divided by its size.
void findPooled(const FoundLookup &found, Misses &misses,
                std::vector<FoundLookup> &lookups);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_POOLING_H
