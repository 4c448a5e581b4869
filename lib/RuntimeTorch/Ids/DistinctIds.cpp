//===- DistinctIds.cpp - The distinct ids of a batch, by owner ------------===//

#include "Ids/DistinctIds.h"
#include "Ids/IdHash.h"

#include <algorithm>
#include <bit>

namespace neuroshard::runtime {

void DistinctFinder::makeRoom(size_t numIds) {
  size_t places = std::bit_ceil(3 * numIds + 1);
  table.assign(places, 0);
  distinct.resize(numIds + 2);
  result.places.resize(numIds);
}

/// Whether an id is new depends on the batch as a coin does: a branch on it
/// would be mispredicted half the time. So a new id is stored in any case, and
/// is there by what is added to the count; and a search ends at a free place as
/// at the id, which lies where number 0 says.
size_t DistinctFinder::number(std::span<const int64_t> ids) {
  const size_t mask = table.size() - 1;
  size_t count = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    size_t place = static_cast<size_t>(hashId(ids[i])) & mask;
    distinct[0] = distinct[count + 1] = ids[i];
    while (distinct[static_cast<size_t>(table[place])] != ids[i])
      place = (place + 1) & mask;
    auto isNew = static_cast<size_t>(table[place] == 0);
    count += isNew;
    table[place] += static_cast<int32_t>(count * isNew);
    result.places[i] = table[place];
  }
  return count;
}

const DistinctIds &DistinctFinder::find(std::span<const int64_t> ids,
                                        int32_t ranks) {
  makeRoom(ids.size());
  sortByOwner(number(ids), ranks);
  return result;
}

void DistinctFinder::sortByOwner(size_t numDistinct, int32_t ranks) {
  result.counts.assign(static_cast<size_t>(ranks), 0);
  owners.resize(numDistinct + 1);
  sorted.resize(numDistinct + 1);
  result.ids.resize(numDistinct);
  for (size_t i = 1; i <= numDistinct; ++i) {
    owners[i] = ownerOfHash(hashId(distinct[i]), ranks);
    ++result.counts[static_cast<size_t>(owners[i])];
  }
  std::vector<int32_t> next(result.counts.size());
  for (size_t rank = 1; rank < next.size(); ++rank)
    next[rank] = next[rank - 1] + static_cast<int32_t>(result.counts[rank - 1]);
  for (size_t i = 1; i <= numDistinct; ++i) {
    sorted[i] = next[static_cast<size_t>(owners[i])]++;
    result.ids[static_cast<size_t>(sorted[i])] = distinct[i];
  }
  for (int32_t &place : result.places)
    place = sorted[static_cast<size_t>(place)];
}

} // namespace neuroshard::runtime
