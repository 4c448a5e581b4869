//===- CacheIndex.cpp - Which rows a cache has, and where -----------------===//

#include "CacheIndex.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <bit>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

namespace neuroshard::runtime {

CacheIndex::CacheIndex(CacheSpec cache, int64_t rows)
    : spec(cache), sets(static_cast<uint64_t>(cache.rows / kCacheWays)),
      tags(index(cache.rows)), uses(index(cache.rows)) {
  if (rows > kMaxCachedShardRows)
    fail("a shard with a cache has ", rows, " rows; at most ",
         kMaxCachedShardRows, " work");
}

void CacheIndex::beginBatch() { ++batch; }

/// Sets take turns in an order that spreads neighbouring rows.
size_t CacheIndex::firstOfSet(int64_t row) const {
  constexpr uint32_t kGoldenRatio = 0x9E3779B1;
  uint64_t hash = static_cast<uint32_t>(row) * kGoldenRatio;
  return static_cast<size_t>(((hash * sets) >> 32) * kCacheWays);
}

/// Bit w is set if tags[w] is the tag.
static uint32_t waysOf(const uint32_t *tags, uint32_t tag) {
  uint32_t ways = 0;
#ifdef __x86_64__
  __m128i wanted = _mm_set1_epi32(static_cast<int>(tag));
  auto four = [&](int64_t way) {
    return _mm_cmpeq_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i *>(tags + way)), wanted);
  };
  for (int64_t way = 0; way < kCacheWays; way += 16) {
    __m128i low = _mm_packs_epi32(four(way), four(way + 4));
    __m128i high = _mm_packs_epi32(four(way + 8), four(way + 12));
    auto found =
        static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
    ways |= found << way;
  }
#else
  for (int64_t way = 0; way < kCacheWays; ++way)
    ways |= uint32_t{tags[way] == tag} << way;
#endif
  return ways;
}

int64_t CacheIndex::placeOf(int64_t row) const {
  size_t first = firstOfSet(row);
  if (uint32_t ways = waysOf(&tags[first], tagOf(row)))
    return static_cast<int64_t>(first) + std::countr_zero(ways);
  if (spilled.empty())
    return -1;
  auto found = spilled.find(row);
  return found == spilled.end() ? -1 : found->second;
}

/// Rows ahead of the one that is looked for, whose sets are loaded.
static constexpr size_t kPrefetchedRows = 16;

void CacheIndex::find(std::span<const int64_t> rows, int64_t *places,
                      CacheBatch &user) {
  for (size_t i = 0; i < std::min(rows.size(), kPrefetchedRows); ++i)
    prefetch(rows[i]);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kPrefetchedRows < rows.size())
      prefetch(rows[i + kPrefetchedRows]);
    places[i] = placeOf(rows[i]);
    if (places[i] >= 0)
      __builtin_prefetch(&uses[index(places[i])], /*write=*/1);
  }
  for (size_t i = 0; i < rows.size(); ++i)
    if (places[i] >= 0)
      use(places[i], user);
}

void CacheIndex::use(int64_t place, CacheBatch &user) {
  Use &one = uses[index(place)];
  if (one.inUse > 0 && one.lastBatch == batch)
    return;
  one.lastBatch = batch;
  ++one.batches;
  ++one.inUse;
  user.places.push_back(place);
}

bool CacheIndex::leavesBefore(const Use &one, const Use &other) const {
  if (spec.policy == CachePolicy::Lfu && one.batches != other.batches)
    return one.batches < other.batches;
  return one.lastBatch < other.lastBatch;
}

int64_t CacheIndex::choosePlace(size_t first) const {
  int64_t best = -1;
  for (size_t place = first; place < first + kCacheWays; ++place) {
    if (tags[place] == 0)
      return static_cast<int64_t>(place);
    if (uses[place].inUse == 0 &&
        (best < 0 || leavesBefore(uses[place], uses[index(best)])))
      best = static_cast<int64_t>(place);
  }
  return best;
}

int64_t CacheIndex::spill(int64_t row) {
  int64_t place;
  if (freeSpills.empty()) {
    place = static_cast<int64_t>(tags.size());
    tags.emplace_back();
    uses.emplace_back();
  } else {
    place = freeSpills.back();
    freeSpills.pop_back();
  }
  spilled.emplace(row, place);
  return place;
}

int64_t CacheIndex::admit(int64_t row, CacheBatch &user) {
  if (int64_t place = placeOf(row); place >= 0) {
    use(place, user);
    return place;
  }
  int64_t place = choosePlace(firstOfSet(row));
  if (place < 0)
    place = spill(row);
  else if (uses[index(place)].isChanged)
    user.written.push_back({rowAt(index(place)), place});
  forget(index(place));
  tags[index(place)] = tagOf(row);
  use(place, user);
  user.fetched.push_back({row, place});
  return place;
}

void CacheIndex::forget(size_t place) {
  numChanged -= uses[place].isChanged ? 1 : 0;
  tags[place] = 0;
  uses[place] = {};
}

std::vector<CachedRow> CacheIndex::release(const CacheBatch &user) {
  std::vector<CachedRow> written;
  for (int64_t place : user.places) {
    Use &one = uses[index(place)];
    if (--one.inUse > 0 || place < spec.rows)
      continue;
    int64_t row = rowAt(index(place));
    if (one.isChanged)
      written.push_back({row, place});
    spilled.erase(row);
    freeSpills.push_back(place);
    forget(index(place));
  }
  return written;
}

template <typename Predicate>
std::vector<CachedRow> CacheIndex::rowsWhere(const Predicate &predicate) const {
  std::vector<CachedRow> rows;
  for (size_t place = 0; place < tags.size(); ++place)
    if (tags[place] != 0 && predicate(uses[place]))
      rows.push_back({rowAt(place), static_cast<int64_t>(place)});
  return rows;
}

std::vector<CachedRow> CacheIndex::takeChanged() {
  if (numChanged == 0)
    return {};
  std::vector<CachedRow> rows =
      rowsWhere([](const Use &use) { return use.isChanged; });
  for (const CachedRow &row : rows)
    uses[index(row.place)].isChanged = false;
  numChanged = 0;
  return rows;
}

std::vector<CachedRow> CacheIndex::dropUnused() {
  for (size_t place = 0; place < tags.size(); ++place)
    if (tags[place] != 0 && uses[place].inUse == 0)
      forget(place);
  return rowsWhere([](const Use &) { return true; });
}

} // namespace neuroshard::runtime
