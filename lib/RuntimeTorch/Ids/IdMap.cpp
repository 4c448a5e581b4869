//===- IdMap.cpp - Which id has which of a set of rows --------------------===//

#include "Ids/IdMap.h"

#include <algorithm>
#include <ranges>

namespace neuroshard::runtime {

IdMap::IdMap(std::vector<int64_t> rows, EvictBy by)
    : entries(rows.size()), lastUse(rows.size(), -1), free(rows.size()),
      index(static_cast<int64_t>(rows.size())), order(by) {
  std::ranges::sort(rows);
  for (size_t i = 0; i < rows.size(); ++i)
    entries[i].row = rows[i];
  setFree();
}

void IdMap::setFree() {
  free.clear();
  for (size_t i = 0; i < entries.size(); ++i)
    if (!entries[i].isUsed())
      free.insert(static_cast<int32_t>(i));
}

void IdMap::note(int32_t slot) {
  if (!groups.empty())
    groups.back().push_back({slot, lastUse[place(slot)], entries[place(slot)]});
}

void IdMap::use(int32_t slot, int64_t lookup) {
  if (lastUse[place(slot)] == lookup)
    return;
  note(slot);
  lastUse[place(slot)] = lookup;
}

void IdMap::see(int32_t slot, int64_t batch, int64_t lookup) {
  use(slot, lookup);
  IdEntry &entry = entries[place(slot)];
  if (entry.last == batch)
    return;
  ++entry.count;
  entry.last = batch;
  order.note(slot, entry);
}

int32_t IdMap::insert(int64_t id, int64_t count, int64_t batch) {
  int32_t slot = free.takeFirst();
  note(slot);
  IdEntry &entry = entries[place(slot)];
  entry = {id, entry.row, count, batch, batch};
  index.insert(id, slot);
  order.note(slot, entry);
  return slot;
}

void IdMap::erase(int32_t slot) {
  note(slot);
  IdEntry &entry = entries[place(slot)];
  index.erase(entry.id);
  entry = {.row = entry.row};
  lastUse[place(slot)] = -1;
  free.insert(slot);
}

int64_t IdMap::evict(int64_t count, int64_t firstHeld) {
  if (count <= 0)
    return 0;
  std::vector<int32_t> evicted =
      order.first(entries, static_cast<size_t>(count), [&](int32_t slot) {
        return lastUse[place(slot)] >= firstHeld;
      });
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
  std::ranges::fill(lastUse, -1);
  for (IdEntry &entry : entries)
    entry = {.row = entry.row};
  for (const IdEntry &one : saved) {
    auto found = std::ranges::lower_bound(entries, one.row, {}, &IdEntry::row);
    *found = one;
    index.insert(one.id, static_cast<int32_t>(found - entries.begin()));
  }
  setFree();
}

void IdMap::undoGroups() {
  for (const std::vector<Change> &group : groups | std::views::reverse)
    for (const Change &change : group | std::views::reverse) {
      entries[place(change.slot)] = change.entry;
      lastUse[place(change.slot)] = change.lastUse;
    }
  groups.clear();
  index.clear();
  order.clear();
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].isUsed())
      index.insert(entries[i].id, static_cast<int32_t>(i));
  setFree();
}

std::vector<IdEntry> IdMap::slotsBefore() const {
  std::vector<IdEntry> before = entries;
  for (const std::vector<Change> &group : groups | std::views::reverse)
    for (const Change &change : group | std::views::reverse)
      before[place(change.slot)] = change.entry;
  return before;
}

int64_t IdMap::bytes() const {
  auto slots = static_cast<int64_t>(entries.size());
  return index.bytes() + free.bytes() +
         slots * static_cast<int64_t>(sizeof(IdEntry) + sizeof(int64_t));
}

} // namespace neuroshard::runtime
