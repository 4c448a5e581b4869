//===- CacheIndex.h - Which rows a cache has, and where ---------*- C++ -*-===//
//
// The bookkeeping of a row cache (Model/RowCache.h), without the rows. A batch
// first finds those of its rows that are there, then admits the others in the
// order of their ids; what it uses stays until it is released. Where all places
// of a set are in use, rows spill: they get places behind those of all sets,
// until no batch uses them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_CACHEINDEX_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_CACHEINDEX_H

#include "neuroshard/Model/RowCache.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace neuroshard::runtime {

/// A row of a shard and its place in the cache.
struct CachedRow {
  int64_t row = 0;
  int64_t place = 0;
  bool operator==(const CachedRow &) const = default;
};

/// What a batch uses, and what must move for it: first `written`, then
/// `fetched`.
struct CacheBatch {
  std::vector<int64_t> places; ///< in use, each once.
  std::vector<CachedRow> written;
  std::vector<CachedRow> fetched;
  int64_t job = 0; ///< the last of its transfers and of those before.

  /// Rows that were there.
  int64_t hits() const {
    return static_cast<int64_t>(places.size() - fetched.size());
  }
};

class CacheIndex {
public:
  /// Of a shard of `rows` rows, below 2^32.
  CacheIndex(CacheSpec spec, int64_t rows);

  void beginBatch();
  /// Places of rows that are there, which the batch uses from now on; of the
  /// others -1.
  void find(std::span<const int64_t> rows, int64_t *places, CacheBatch &batch);
  /// The place of a row, which it gets if it has none. Only after all rows of
  /// the batch were looked for: rows that it needs must not leave for it.
  int64_t admit(int64_t row, CacheBatch &batch);
  /// Of a row; -1 if it is not there. Changes nothing.
  int64_t placeOf(int64_t row) const;

  /// The row at a place in use has other values than in its tier.
  void markChanged(int64_t place) {
    bool &isChanged = uses[index(place)].isChanged;
    numChanged += isChanged ? 0 : 1;
    isChanged = true;
  }
  /// The batch is over. Returns what leaves with it and must be written.
  std::vector<CachedRow> release(const CacheBatch &batch);

  /// All changed rows, which count as written from now on.
  std::vector<CachedRow> takeChanged();
  /// Forgets rows that no batch uses. Returns the others.
  std::vector<CachedRow> dropUnused();

  /// Places that rows have had so far: those of the sets, and behind them.
  int64_t numPlaces() const {
    return spec.rows + static_cast<int64_t>(spilled.size() + freeSpills.size());
  }
  /// Rows that have spilled.
  int64_t numSpilled() const { return static_cast<int64_t>(spilled.size()); }

private:
  struct Use {
    uint32_t lastBatch = 0;
    uint32_t batches = 0; ///< since the row came in.
    uint16_t inUse = 0;   ///< by so many batches that are not released.
    bool isChanged = false;
  };

  static size_t index(int64_t place) { return static_cast<size_t>(place); }
  /// 0 is a free place.
  static uint32_t tagOf(int64_t row) { return static_cast<uint32_t>(row + 1); }
  int64_t rowAt(size_t place) const { return int64_t{tags[place]} - 1; }
  size_t firstOfSet(int64_t row) const;
  /// Loads the set of a row ahead of time.
  void prefetch(int64_t row) const {
    __builtin_prefetch(&tags[firstOfSet(row)]);
    __builtin_prefetch(&tags[firstOfSet(row) + kCacheWays / 2]);
  }
  void use(int64_t place, CacheBatch &batch);
  /// Place in a set for a new row; -1 if all are in use.
  int64_t choosePlace(size_t first) const;
  bool leavesBefore(const Use &one, const Use &other) const;
  int64_t spill(int64_t row);
  void forget(size_t place);
  template <typename Predicate>
  std::vector<CachedRow> rowsWhere(const Predicate &predicate) const;

  CacheSpec spec;
  uint64_t sets;
  uint32_t batch = 0;
  // By place.
  std::vector<uint32_t> tags;
  std::vector<Use> uses;
  std::unordered_map<int64_t, int64_t> spilled; ///< places by row.
  std::vector<int64_t> freeSpills;
  int64_t numChanged = 0;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_CACHEINDEX_H
