//===- CacheHits.h - Expected hits of a row cache ---------------*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_CACHEHITS_H
#define NEUROSHARD_PLANNER_CACHEHITS_H

#include "neuroshard/Model/RowCache.h"
#include "neuroshard/Model/Table.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Distinct rows that a batch uses, and those of them that are in the cache, in
/// the mean of the batches after the cache has filled.
struct CacheUse {
  double rows = 0;
  double hits = 0;

  double misses() const { return rows - hits; }
  double hitRate() const { return rows > 0 ? hits / rows : 1; }
};

/// Which rows of a table the ids of batches name, drawn independently: by the
/// table's row mass; else by its reuse histogram; else all rows are alike.
class RowDemand {
public:
  /// A batch of so many samples has `lookups` ids for the table.
  RowDemand(const Table &table, double lookups, double batch);

  /// Of the cache of a shard of rows [begin, end) of the table, which gets the
  /// ids of these where the rows are in the order of their use, else its share
  /// of the ids.
  ///
  /// LRU by Che's approximation (Che, Tung, Wang: Hierarchical Web caching
  /// systems, IEEE JSAC 2002): a row is there if one of the last T batches used
  /// it, where T is such that the expected number of rows there is that of the
  /// places. LFU by a replay of some of the cache's sets
  /// (lib/Planner/Cost/LfuReplay.h), which takes some ms.
  CacheUse use(int64_t begin, int64_t end, const CacheSpec &cache) const;

private:
  /// Rows of which each is used by a batch with one probability.
  struct Group {
    double rows; ///< of the table's.
    double used;
  };
  std::vector<Group> groups;
  double tableRows;
  bool inOrder; ///< rows of groups follow each other in the table.
};

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_CACHEHITS_H
