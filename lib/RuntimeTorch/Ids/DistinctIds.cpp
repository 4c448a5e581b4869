//===- DistinctIds.cpp - The distinct ids of a batch, by owner ------------===//

#include "Ids/DistinctIds.h"
#include "Ids/IdHash.h"

#include <algorithm>
#include <bit>

namespace neuroshard::runtime {

void DistinctFinder::makeRoom(size_t numIds) {
  size_t wanted = std::bit_ceil(numIds + numIds / 2 + 1);
  if (table.size() < wanted || ++round == 0) {
    table.assign(std::max(table.size(), wanted), {});
    round = 1;
  }
}

DistinctFinder::Place &DistinctFinder::placeOf(uint64_t hash, int64_t id) {
  size_t mask = table.size() - 1;
  size_t place = static_cast<size_t>(hash) & mask;
  while (table[place].round == round && table[place].id != id)
    place = (place + 1) & mask;
  return table[place];
}

const DistinctIds &DistinctFinder::find(std::span<const int64_t> ids,
                                        int32_t ranks) {
  constexpr size_t kAhead = 16;
  makeRoom(ids.size());
  unsorted.clear();
  owners.clear();
  result.places.resize(ids.size());
  result.counts.assign(static_cast<size_t>(ranks), 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size())
      __builtin_prefetch(&table[static_cast<size_t>(hashId(ids[i + kAhead])) &
                                (table.size() - 1)]);
    uint64_t hash = hashId(ids[i]);
    Place &place = placeOf(hash, ids[i]);
    if (place.round != round) {
      place = {ids[i], static_cast<int32_t>(unsorted.size()), round};
      unsorted.push_back(ids[i]);
      owners.push_back(ownerOfHash(hash, ranks));
      ++result.counts[static_cast<size_t>(owners.back())];
    }
    result.places[i] = place.number;
  }
  sortByOwner(ranks);
  return result;
}

void DistinctFinder::sortByOwner(int32_t ranks) {
  if (ranks == 1) {
    result.ids = unsorted;
    return;
  }
  std::vector<int32_t> next(result.counts.size());
  for (size_t rank = 1; rank < next.size(); ++rank)
    next[rank] = next[rank - 1] + static_cast<int32_t>(result.counts[rank - 1]);
  sorted.resize(unsorted.size());
  result.ids.resize(unsorted.size());
  for (size_t i = 0; i < unsorted.size(); ++i) {
    sorted[i] = next[static_cast<size_t>(owners[i])]++;
    result.ids[static_cast<size_t>(sorted[i])] = unsorted[i];
  }
  for (int32_t &place : result.places)
    place = sorted[static_cast<size_t>(place)];
}

} // namespace neuroshard::runtime
