//===- IdMap.cpp - Which id has which of a set of rows --------------------===//

#include "Ids/IdMap.h"

#include <algorithm>
#include <ranges>

namespace neuroshard::runtime {

IdMap::IdMap(std::vector<int64_t> rows, EvictBy by)
    : all(rows.size()), free(rows.size()),
      index(static_cast<int64_t>(rows.size())), order(by) {
  std::ranges::sort(rows);
  for (size_t i = 0; i < rows.size(); ++i)
    all[i].entry.row = rows[i];
  setFree();
}

void IdMap::setFree() {
  free.clear();
  for (size_t i = 0; i < all.size(); ++i)
    if (!all[i].entry.isUsed())
      free.insert(static_cast<int32_t>(i));
}

void IdMap::note(int32_t slot) {
  if (!groups.empty())
    groups.back().push_back({slot, all[place(slot)]});
}

void IdMap::use(int32_t slot, int64_t lookup) {
  if (all[place(slot)].lastUse == lookup)
    return;
  note(slot);
  all[place(slot)].lastUse = lookup;
}

void IdMap::see(int32_t slot, int64_t batch, int64_t lookup) {
  use(slot, lookup);
  IdEntry &entry = all[place(slot)].entry;
  if (entry.last == batch)
    return;
  ++entry.count;
  entry.last = batch;
  order.note(slot, entry);
}

int32_t IdMap::insert(int64_t id, int64_t count, int64_t batch) {
  int32_t slot = free.takeFirst();
  note(slot);
  IdEntry &entry = all[place(slot)].entry;
  entry = {entry.row, count, batch, id, batch};
  index.insert(id, slot);
  order.note(slot, entry);
  return slot;
}

void IdMap::erase(int32_t slot) {
  note(slot);
  IdSlot &erased = all[place(slot)];
  index.erase(erased.entry.id);
  erased = {.entry = {.row = erased.entry.row}};
  free.insert(slot);
}

int64_t IdMap::evict(int64_t count, int64_t firstHeld) {
  if (count <= 0)
    return 0;
  std::vector<int32_t> evicted =
      order.first(all, static_cast<size_t>(count), firstHeld);
  for (size_t i = 0; i < evicted.size(); ++i) {
    if (i + kAhead < evicted.size())
      index.prefetch(at(evicted[i + kAhead]).id);
    erase(evicted[i]);
  }
  return static_cast<int64_t>(evicted.size());
}

void IdMap::restore(std::span<const IdEntry> saved) {
  groups.clear();
  index.clear();
  order.clear();
  for (IdSlot &slot : all)
    slot = {.entry = {.row = slot.entry.row}};
  for (const IdEntry &one : saved) {
    auto found = std::ranges::lower_bound(
        all, one.row, {}, [](const IdSlot &slot) { return slot.entry.row; });
    found->entry = one;
    index.insert(one.id, static_cast<int32_t>(found - all.begin()));
  }
  setFree();
}

void IdMap::undoGroups() {
  for (const std::vector<Change> &group : groups | std::views::reverse)
    for (const Change &change : group | std::views::reverse)
      all[place(change.slot)] = change.before;
  groups.clear();
  index.clear();
  order.clear();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].entry.isUsed())
      index.insert(all[i].entry.id, static_cast<int32_t>(i));
  setFree();
}

std::vector<IdEntry> IdMap::slots() const {
  std::vector<IdEntry> entries;
  entries.reserve(all.size());
  for (const IdSlot &slot : all)
    entries.push_back(slot.entry);
  return entries;
}

std::vector<IdEntry> IdMap::slotsBefore() const {
  std::vector<IdEntry> before = slots();
  for (const std::vector<Change> &group : groups | std::views::reverse)
    for (const Change &change : group | std::views::reverse)
      before[place(change.slot)] = change.before.entry;
  return before;
}

int64_t IdMap::bytes() const {
  return index.bytes() + free.bytes() +
         capacity() * static_cast<int64_t>(sizeof(IdSlot));
}

} // namespace neuroshard::runtime
