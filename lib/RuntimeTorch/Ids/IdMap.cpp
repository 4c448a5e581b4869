//===- IdMap.cpp - Which id has which of a set of rows --------------------===//

#include "Ids/IdMap.h"

#include <algorithm>
#include <ranges>

namespace neuroshard::runtime {

IdMap::IdMap(std::vector<int64_t> rows, EvictBy by)
    : free(rows.size()), index(static_cast<int64_t>(rows.size())), order(by) {
  std::ranges::sort(rows);
  all.uses.resize(rows.size());
  all.origins.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    all.uses[i].row = rows[i];
  setFree();
}

void IdMap::setFree() {
  free.clear();
  for (size_t i = 0; i < all.size(); ++i)
    if (!all.isUsed(i))
      free.insert(static_cast<int32_t>(i));
}

void IdMap::note(int32_t slot) {
  if (!groups.empty())
    groups.back().push_back(
        {slot, all.uses[place(slot)].lastUse, all.entry(place(slot))});
}

void IdMap::use(int32_t slot, int64_t lookup) {
  if (all.uses[place(slot)].lastUse == lookup)
    return;
  note(slot);
  all.uses[place(slot)].lastUse = lookup;
}

void IdMap::see(int32_t slot, int64_t batch, int64_t lookup) {
  use(slot, lookup);
  IdSlots::Use &seen = all.uses[place(slot)];
  if (seen.last == batch)
    return;
  ++seen.count;
  seen.last = batch;
  order.note(slot, all);
}

int32_t IdMap::insert(int64_t id, int64_t count, int64_t batch) {
  int32_t slot = free.takeFirst();
  note(slot);
  all.setEntry(place(slot), {rowOf(slot), count, batch, id, batch});
  index.insert(id, slot);
  order.note(slot, all);
  return slot;
}

void IdMap::erase(int32_t slot) {
  note(slot);
  index.erase(all.origins[place(slot)].id);
  clear(place(slot));
  free.insert(slot);
}

void IdMap::clear(size_t slot) {
  all.uses[slot] = {.row = all.uses[slot].row};
  all.origins[slot] = {};
}

int64_t IdMap::evict(int64_t count, int64_t firstHeld) {
  if (count <= 0)
    return 0;
  std::vector<int32_t> evicted =
      order.first(all, static_cast<size_t>(count), firstHeld);
  for (size_t i = 0; i < evicted.size(); ++i) {
    if (i + kAhead < evicted.size())
      index.prefetch(all.origins[place(evicted[i + kAhead])].id);
    erase(evicted[i]);
  }
  return static_cast<int64_t>(evicted.size());
}

void IdMap::restore(std::span<const IdEntry> saved) {
  groups.clear();
  index.clear();
  order.clear();
  for (size_t i = 0; i < all.size(); ++i)
    clear(i);
  for (const IdEntry &one : saved) {
    auto found =
        std::ranges::lower_bound(all.uses, one.row, {}, &IdSlots::Use::row) -
        all.uses.begin();
    all.setEntry(static_cast<size_t>(found), one);
    index.insert(one.id, static_cast<int32_t>(found));
  }
  setFree();
}

void IdMap::undoGroups() {
  for (const std::vector<Change> &group : groups | std::views::reverse)
    for (const Change &change : group | std::views::reverse) {
      all.setEntry(place(change.slot), change.before);
      all.uses[place(change.slot)].lastUse = change.lastUse;
    }
  groups.clear();
  index.clear();
  order.clear();
  for (size_t i = 0; i < all.size(); ++i)
    if (all.isUsed(i))
      index.insert(all.origins[i].id, static_cast<int32_t>(i));
  setFree();
}

std::vector<IdEntry> IdMap::slots() const {
  std::vector<IdEntry> entries;
  entries.reserve(all.size());
  for (size_t i = 0; i < all.size(); ++i)
    entries.push_back(all.entry(i));
  return entries;
}

std::vector<IdEntry> IdMap::slotsBefore() const {
  std::vector<IdEntry> before = slots();
  for (const std::vector<Change> &group : groups | std::views::reverse)
    for (const Change &change : group | std::views::reverse)
      before[place(change.slot)] = change.before;
  return before;
}

int64_t IdMap::bytes() const {
  return index.bytes() + free.bytes() +
         capacity() * static_cast<int64_t>(sizeof(IdSlots::Use) +
                                           sizeof(IdSlots::Origin));
}

} // namespace neuroshard::runtime
