//===- IdOwner.cpp - A rank's part of the map of a table's ids ------------===//

#include "Ids/IdOwner.h"
#include "Ids/DistinctIds.h"

#include <algorithm>
#include <numeric>

namespace neuroshard::runtime {

namespace {

constexpr size_t kAhead = 16;

std::vector<int64_t> numbersBelow(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

/// Calls function(place, slot) for all ids, whose slots in the map may be
/// IdIndex::kNone.
template <typename Function>
void forSlots(const IdMap &map, std::span<const int64_t> ids,
              const Function &function) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size())
      map.prefetch(ids[i + kAhead]);
    function(i, map.find(ids[i]));
  }
}

} // namespace

IdOwner::IdOwner(std::vector<int64_t> rows, const IdPolicy &idPolicy)
    : policy(idPolicy), ids(std::move(rows), idPolicy.evictBy),
      waiting(numbersBelow(idPolicy.numCandidates), EvictBy::Recency) {}

std::vector<int64_t> IdOwner::find(std::span<const int64_t> given,
                                   int64_t lookup) {
  std::vector<int64_t> rows(given.size(), policy.sharedRow);
  forSlots(ids, given, [&](size_t i, int32_t slot) {
    if (slot == IdIndex::kNone)
      return;
    rows[i] = ids.at(slot).row;
    ids.use(slot, lookup);
  });
  return rows;
}

Translated IdOwner::train(std::span<const int64_t> given, int64_t lookup,
                          int64_t firstHeld) {
  ++batch;
  DistinctIds distinct = findDistinct(given, 1);
  std::vector<int64_t> rows(distinct.ids.size(), policy.sharedRow);
  std::vector<int64_t> unknown;
  std::vector<size_t> places; // of unknown ids among the distinct ones
  forSlots(ids, distinct.ids, [&](size_t i, int32_t slot) {
    if (slot == IdIndex::kNone) {
      unknown.push_back(distinct.ids[i]);
      places.push_back(i);
      return;
    }
    ids.see(slot, batch);
    ids.use(slot, lookup);
    rows[i] = ids.at(slot).row;
  });
  Translated result;
  admit(countUnknown(unknown), lookup, firstHeld, result);
  forSlots(ids, unknown, [&](size_t i, int32_t slot) {
    if (slot != IdIndex::kNone)
      rows[places[i]] = ids.at(slot).row;
  });
  result.rows.resize(given.size());
  for (size_t i = 0; i < given.size(); ++i)
    result.rows[i] = rows[static_cast<size_t>(distinct.places[i])];
  return result;
}

std::vector<IdOwner::Due>
IdOwner::countUnknown(std::span<const int64_t> unknown) {
  std::vector<Due> due;
  if (policy.admitAfter == 1) {
    for (int64_t id : unknown)
      due.push_back({id, 1});
    return due;
  }
  std::vector<int64_t> unseen;
  forSlots(waiting, unknown, [&](size_t i, int32_t slot) {
    if (slot == IdIndex::kNone)
      return unseen.push_back(unknown[i]);
    waiting.see(slot, batch);
    waiting.use(slot, batch);
    if (waiting.at(slot).count >= policy.admitAfter)
      due.push_back({unknown[i], waiting.at(slot).count});
  });
  auto numUnseen = static_cast<int64_t>(unseen.size());
  sums.forgotten += waiting.evict(numUnseen - waiting.numFree(), batch);
  int64_t counted = std::min(numUnseen, waiting.numFree());
  for (int64_t id : std::span(unseen).first(static_cast<size_t>(counted)))
    waiting.use(waiting.insert(id, 1, batch), batch);
  sums.forgotten += numUnseen - counted;
  return due;
}

void IdOwner::admit(const std::vector<Due> &due, int64_t lookup,
                    int64_t firstHeld, Translated &result) {
  auto numDue = static_cast<int64_t>(due.size());
  if (policy.whenFull == WhenFull::Evict)
    sums.evicted += ids.evict(numDue - ids.numFree(), firstHeld);
  int64_t admitted = std::min(numDue, ids.numFree());
  for (const Due &one : std::span(due).first(static_cast<size_t>(admitted))) {
    int32_t slot = ids.insert(one.id, one.count, batch);
    ids.use(slot, lookup);
    result.admitted.push_back({ids.at(slot).row, one.id});
    if (policy.admitAfter > 1)
      waiting.erase(waiting.find(one.id));
  }
  sums.admitted += admitted;
  sums.refused += numDue - admitted;
  if (admitted < numDue && policy.whenFull == WhenFull::Refuse)
    result.refused = due[static_cast<size_t>(admitted)].id;
}

void IdOwner::restore(std::span<const IdEntry> saved,
                      std::span<const IdEntry> savedCandidates,
                      int64_t batches) {
  ids.restore(saved);
  waiting.restore(savedCandidates);
  batch = batches;
}

} // namespace neuroshard::runtime
