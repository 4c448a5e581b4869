//===- IdOwner.cpp - A rank's part of the map of a table's ids ------------===//

#include "Ids/IdOwner.h"

#include <algorithm>
#include <numeric>

namespace neuroshard::runtime {

namespace {

std::vector<int64_t> numbersBelow(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

} // namespace

IdOwner::IdOwner(std::vector<int64_t> rows, const IdPolicy &idPolicy)
    : policy(idPolicy), ids(std::move(rows), idPolicy.evictBy),
      waiting(numbersBelow(idPolicy.numCandidates), EvictBy::Recency) {}

void IdOwner::beginResult(size_t numIds) {
  result.rows.assign(numIds, policy.sharedRow);
  result.admitted.clear();
  result.refused.reset();
}

const Translated &IdOwner::find(std::span<const int64_t> given,
                                int64_t lookup) {
  std::lock_guard lock(mutex);
  beginResult(given.size());
  ids.forSlots(given, [&](size_t i, int32_t slot) {
    if (slot == IdIndex::kNone)
      return;
    result.rows[i] = ids.rowOf(slot);
    ids.use(slot, lookup);
  });
  return result;
}

const Translated &IdOwner::train(std::span<const int64_t> given, int64_t lookup,
                                 int64_t firstHeld) {
  std::lock_guard lock(mutex);
  ++batch;
  beginResult(given.size());
  unknown.clear();
  unknownPlaces.clear();
  ids.forSlots(given, [&](size_t i, int32_t slot) {
    if (slot == IdIndex::kNone) {
      unknown.push_back(given[i]);
      unknownPlaces.push_back(i);
      return;
    }
    ids.see(slot, batch, lookup);
    result.rows[i] = ids.rowOf(slot);
  });
  admit(countUnknown(finder.find(unknown, 1).ids), lookup, firstHeld);
  ids.forSlots(unknown, [&](size_t i, int32_t slot) {
    if (slot != IdIndex::kNone)
      result.rows[unknownPlaces[i]] = ids.rowOf(slot);
  });
  return result;
}

std::vector<IdOwner::Due>
IdOwner::countUnknown(std::span<const int64_t> distinct) {
  std::vector<Due> due;
  if (policy.admitAfter == 1) {
    for (int64_t id : distinct)
      due.push_back({id, 1});
    return due;
  }
  std::vector<int64_t> unseen;
  waiting.forSlots(distinct, [&](size_t i, int32_t slot) {
    if (slot == IdIndex::kNone)
      return unseen.push_back(distinct[i]);
    waiting.see(slot, batch, batch);
    if (waiting.countOf(slot) >= policy.admitAfter)
      due.push_back({distinct[i], waiting.countOf(slot)});
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
                    int64_t firstHeld) {
  auto numDue = static_cast<int64_t>(due.size());
  if (policy.whenFull == WhenFull::Evict)
    sums.evicted += ids.evict(numDue - ids.numFree(), firstHeld);
  int64_t admitted = std::min(numDue, ids.numFree());
  for (const Due &one : std::span(due).first(static_cast<size_t>(admitted))) {
    int32_t slot = ids.insert(one.id, one.count, batch);
    ids.use(slot, lookup);
    result.admitted.push_back({ids.rowOf(slot), one.id});
    if (policy.admitAfter > 1)
      waiting.erase(waiting.find(one.id));
  }
  sums.admitted += admitted;
  sums.refused += numDue - admitted;
  if (admitted < numDue && policy.whenFull == WhenFull::Refuse)
    result.refused = due[static_cast<size_t>(admitted)].id;
}

void IdOwner::beginAhead() {
  std::lock_guard lock(mutex);
  ids.beginGroup();
  waiting.beginGroup();
  ahead.push_back({sums, batch});
}

void IdOwner::keepAhead() {
  std::lock_guard lock(mutex);
  if (ahead.empty())
    return;
  ids.keepGroup();
  waiting.keepGroup();
  ahead.pop_front();
}

void IdOwner::undoAhead() {
  std::lock_guard lock(mutex);
  if (ahead.empty())
    return;
  ids.undoGroups();
  waiting.undoGroups();
  sums = ahead.front().sums;
  batch = ahead.front().batch;
  ahead.clear();
}

std::vector<IdEntry> IdOwner::entriesBefore() const {
  std::lock_guard lock(mutex);
  return ids.slotsBefore();
}

std::vector<IdEntry> IdOwner::candidatesBefore() const {
  std::lock_guard lock(mutex);
  return waiting.slotsBefore();
}

IdFigures IdOwner::figures() const {
  std::lock_guard lock(mutex);
  return ahead.empty() ? sums : ahead.front().sums;
}

int64_t IdOwner::batches() const {
  std::lock_guard lock(mutex);
  return ahead.empty() ? batch : ahead.front().batch;
}

void IdOwner::restore(std::span<const IdEntry> saved,
                      std::span<const IdEntry> savedCandidates,
                      int64_t batches) {
  std::lock_guard lock(mutex);
  ahead.clear();
  ids.restore(saved);
  waiting.restore(savedCandidates);
  batch = batches;
}

} // namespace neuroshard::runtime
