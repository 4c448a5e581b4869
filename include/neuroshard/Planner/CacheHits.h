//===- CacheHits.h - Expected hits of a row cache ---------------*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_CACHEHITS_H
#define NEUROSHARD_PLANNER_CACHEHITS_H

#include "neuroshard/Model/RowCache.h"
#include "neuroshard/Model/Table.h"

#include <cstdint>

namespace neuroshard {

/// Distinct rows that a batch uses, and those of them that are in the cache, in
/// the mean of the batches after the cache has filled.
struct CacheUse {
  double rows = 0;
  double hits = 0;

  double hitRate() const { return rows > 0 ? hits / rows : 1; }
};

/// Of the cache of a shard of `rows` of the table's rows, for which a batch has
/// `lookups` ids, drawn independently. How often each row is drawn is told by
/// the table's row mass; else by its reuse histogram, as if that was of a batch
/// like this, which has `tableLookups` ids for the table; else all rows are
/// alike.
///
/// LRU by Che's approximation (Che, Tung, Wang: Hierarchical Web caching
/// systems, IEEE JSAC 2002): a row is there if one of the last T batches used
/// it, where T is such that the expected number of rows there is that of the
/// places. LFU: the rows that are used most stay, in the places that those
/// which a batch fetches leave; which these are is known after thousands of
/// batches.
CacheUse expectedCacheUse(const Table &table, int64_t rows,
                          const CacheSpec &cache, double lookups,
                          double tableLookups);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_CACHEHITS_H
