//===- IdIndex.cpp - Hash table from ids to slots -------------------------===//

#include "Ids/IdIndex.h"
#include "Ids/IdHash.h"

#include <algorithm>
#include <bit>

namespace neuroshard::runtime {

size_t IdIndex::placesFor(int64_t size) {
  auto count = static_cast<size_t>(size);
  return std::bit_ceil(count + count / 2 + 1);
}

int64_t IdIndex::bytesFor(int64_t size) {
  return static_cast<int64_t>(placesFor(size) *
                              (sizeof(int64_t) + sizeof(int32_t)));
}

IdIndex::IdIndex(int64_t size)
    : mask(placesFor(size) - 1), ids(mask + 1), slots(mask + 1, kNone) {}

int64_t IdIndex::bytes() const {
  return static_cast<int64_t>(slots.size() *
                              (sizeof(int64_t) + sizeof(int32_t)));
}

size_t IdIndex::homeOf(int64_t id) const {
  return static_cast<size_t>(hashId(id)) & mask;
}

void IdIndex::prefetch(int64_t id) const {
  size_t place = homeOf(id);
  __builtin_prefetch(&slots[place]);
  __builtin_prefetch(&ids[place]);
}

size_t IdIndex::placeOf(int64_t id) const {
  size_t place = homeOf(id);
  while (slots[place] != kNone && ids[place] != id)
    place = next(place);
  return place;
}

int32_t IdIndex::find(int64_t id) const { return slots[placeOf(id)]; }

void IdIndex::insert(int64_t id, int32_t slot) {
  size_t place = placeOf(id);
  ids[place] = id;
  slots[place] = slot;
}

/// Moves ids behind the free place forward, so that searches need no marks of
/// what was erased.
void IdIndex::erase(int64_t id) {
  size_t hole = placeOf(id);
  for (size_t place = next(hole); slots[place] != kNone; place = next(place)) {
    size_t fromHome = (place - homeOf(ids[place])) & mask;
    if (fromHome < ((place - hole) & mask))
      continue; // a search for it does not come by the hole
    ids[hole] = ids[place];
    slots[hole] = slots[place];
    hole = place;
  }
  slots[hole] = kNone;
}

void IdIndex::clear() { std::ranges::fill(slots, kNone); }

} // namespace neuroshard::runtime
