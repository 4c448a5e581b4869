//===- CacheIndex.cpp - Which rows a cache has, and where -----------------===//

#include "CacheIndex.h"
#include "neuroshard/Artifact/Error.h"

namespace neuroshard::runtime {

CacheIndex::CacheIndex(CacheSpec cache, int64_t rows)
    : spec(cache), sets(static_cast<uint64_t>(cache.rows / kCacheWays)),
      tags(index(cache.rows)), uses(index(cache.rows)) {
  constexpr int64_t kMostRows = (int64_t{1} << 32) - 1;
  if (rows > kMostRows)
    fail("a shard in tier ssd has ", rows, " rows; at most ", kMostRows,
         " work");
}

void CacheIndex::beginBatch() { ++batch; }

/// Sets take turns in an order that spreads neighbouring rows.
size_t CacheIndex::firstOfSet(int64_t row) const {
  constexpr uint32_t kGoldenRatio = 0x9E3779B1;
  uint64_t hash = static_cast<uint32_t>(row) * kGoldenRatio;
  return static_cast<size_t>(((hash * sets) >> 32) * kCacheWays);
}

int64_t CacheIndex::placeOf(int64_t row) const {
  size_t first = firstOfSet(row);
  uint32_t tag = tagOf(row);
  int64_t way = -1; // no early exit, to vectorise
  for (int64_t w = 0; w < kCacheWays; ++w)
    way = tags[first + index(w)] == tag ? w : way;
  if (way >= 0)
    return static_cast<int64_t>(first) + way;
  if (spilled.empty())
    return -1;
  auto found = spilled.find(row);
  return found == spilled.end() ? -1 : found->second;
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
  if (int64_t place = find(row, user); place >= 0)
    return place;
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
