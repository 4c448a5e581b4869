//===- DistinctIds.cpp - The distinct ids of a batch, by owner ------------===//

#include "Ids/DistinctIds.h"
#include "Ids/IdHash.h"
#include "Ids/IdIndex.h"

namespace neuroshard::runtime {

DistinctIds findDistinct(std::span<const int64_t> ids, int32_t ranks) {
  constexpr size_t kAhead = 16;
  IdIndex index(static_cast<int64_t>(ids.size()));
  std::vector<int64_t> distinct;
  DistinctIds result;
  result.places.resize(ids.size());
  result.counts.resize(static_cast<size_t>(ranks));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size())
      index.prefetch(ids[i + kAhead]);
    int32_t number = index.find(ids[i]);
    if (number == IdIndex::kNone) {
      number = static_cast<int32_t>(distinct.size());
      index.insert(ids[i], number);
      distinct.push_back(ids[i]);
      ++result.counts[static_cast<size_t>(ownerOfId(ids[i], ranks))];
    }
    result.places[i] = number;
  }
  if (ranks == 1) {
    result.ids = std::move(distinct);
    return result;
  }
  std::vector<int64_t> next(result.counts.size());
  for (size_t rank = 1; rank < next.size(); ++rank)
    next[rank] = next[rank - 1] + result.counts[rank - 1];
  std::vector<int64_t> sorted(distinct.size());
  result.ids.resize(distinct.size());
  for (size_t i = 0; i < distinct.size(); ++i) {
    sorted[i] = next[static_cast<size_t>(ownerOfId(distinct[i], ranks))]++;
    result.ids[static_cast<size_t>(sorted[i])] = distinct[i];
  }
  for (int64_t &place : result.places)
    place = sorted[static_cast<size_t>(place)];
  return result;
}

} // namespace neuroshard::runtime
