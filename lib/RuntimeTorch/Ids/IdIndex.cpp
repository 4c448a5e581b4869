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
  return static_cast<int64_t>(placesFor(size) * sizeof(Place));
}

IdIndex::IdIndex(int64_t size) : mask(placesFor(size) - 1), places(mask + 1) {}

int64_t IdIndex::bytes() const {
  return static_cast<int64_t>(places.size() * sizeof(Place));
}

size_t IdIndex::homeOf(int64_t id) const {
  return static_cast<size_t>(hashId(id)) & mask;
}

size_t IdIndex::prefetch(int64_t id) const {
  size_t home = homeOf(id);
  __builtin_prefetch(&places[home]);
  return home;
}

size_t IdIndex::placeOf(int64_t id, size_t home) const {
  size_t place = home;
  while (places[place].slot != kNone && places[place].id != id)
    place = next(place);
  return place;
}

int32_t IdIndex::find(int64_t id, size_t home) const {
  return places[placeOf(id, home)].slot;
}

void IdIndex::insert(int64_t id, int32_t slot) {
  places[placeOf(id)] = {id, slot};
}

/// Moves ids behind the free place forward, so that searches need no marks of
/// what was erased.
void IdIndex::erase(int64_t id) {
  size_t hole = placeOf(id);
  for (size_t place = next(hole); places[place].slot != kNone;
       place = next(place)) {
    size_t fromHome = (place - homeOf(places[place].id)) & mask;
    if (fromHome < ((place - hole) & mask))
      continue; // a search for it does not come by the hole
    places[hole] = places[place];
    hole = place;
  }
  places[hole].slot = kNone;
}

void IdIndex::clear() { std::ranges::fill(places, Place()); }

} // namespace neuroshard::runtime
