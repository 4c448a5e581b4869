//===- RowCache.h - Rows of a lower tier in device memory -------*- C++ -*-===//
//
// A shard in a tier below device memory has a cache of rows there. It is
// set-associative: a row may lie in the kCacheWays places of one set.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_MODEL_ROWCACHE_H
#define NEUROSHARD_MODEL_ROWCACHE_H

#include "neuroshard/Model/Optimizer.h"
#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Model/Target.h"
#include "neuroshard/Support/Round.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace neuroshard {

/// Which row leaves a full set: the one that no batch has used for longest, or
/// that the fewest batches have used since it came in (of several, the one that
/// was not used for longest).
enum class CachePolicy { Lru, Lfu };

/// "lru" or "lfu".
std::string_view toString(CachePolicy policy);
std::optional<CachePolicy> parseCachePolicy(std::string_view text);

/// Places of a set.
inline constexpr int64_t kCacheWays = 32;

/// Bytes beside each place's row: which row it is and its use.
inline constexpr int64_t kCachePlaceBytes = 16;

/// Rows that a shard with a cache has at most: their numbers in it have 32
/// bits, of which 0 is no row.
inline constexpr int64_t kMaxCachedShardRows = (int64_t{1} << 32) - 1;

/// The cache of one shard.
struct CacheSpec {
  int64_t rows = 0; ///< 0: none.
  CachePolicy policy = CachePolicy::Lru;
  bool operator==(const CacheSpec &) const = default;
};

/// What is wrong with the cache of a shard of `rows` rows on `copies` devices;
/// "" if nothing. Shards in tier "ssd" need one, and those in tier "dram" where
/// hasRowCache(); others have none.
std::string cacheError(Tier tier, const CacheSpec &cache, int64_t rows,
                       int64_t copies);

/// Bytes of one row of weights and optimizer states, each padded as in memory.
constexpr int64_t rowArrayBytes(OptimizerStates states, int64_t width,
                                ElementType type) {
  return paddedRowBytes(width, type) +
         states.perElement * paddedRowBytes(width, ElementType::F32) +
         states.perRow * elementBytes(ElementType::F32);
}

/// Bytes of one row below device memory, in host memory or a file: its arrays
/// one after the other, padded to kRowAlignmentBytes.
constexpr int64_t recordBytes(OptimizerStates states, int64_t width,
                              ElementType type) {
  return roundUp(rowArrayBytes(states, width, type), kRowAlignmentBytes);
}

/// Bytes of one cached row in device memory: its arrays, and its place.
constexpr int64_t cachedRowBytes(OptimizerStates states, int64_t width,
                                 ElementType type) {
  return rowArrayBytes(states, width, type) + kCachePlaceBytes;
}

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_ROWCACHE_H
