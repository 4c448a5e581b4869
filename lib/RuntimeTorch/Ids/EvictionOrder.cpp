//===- EvictionOrder.cpp - Which ids lose their rows first ----------------===//

#include "Ids/EvictionOrder.h"

#include <algorithm>

namespace neuroshard::runtime {

EvictionOrder::Key EvictionOrder::keyOf(int32_t slot,
                                        const IdEntry &entry) const {
  switch (by) {
  case EvictBy::Recency:
    return {entry.last, 0, slot};
  case EvictBy::Frequency:
    return {entry.count, entry.last, slot};
  case EvictBy::Age:
    break;
  }
  return {entry.since, 0, slot};
}

void EvictionOrder::push(Key key) {
  heap.push_back(key);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

EvictionOrder::Key EvictionOrder::pop() {
  if (heap.empty() || (next < sorted.size() && sorted[next] < heap.front()))
    return sorted[next++];
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  Key key = heap.back();
  heap.pop_back();
  return key;
}

void EvictionOrder::note(int32_t slot, const IdEntry &entry) {
  // Being seen changes no age; a key is there once.
  if (by == EvictBy::Age && entry.last != entry.since)
    return;
  Key key = keyOf(slot, entry);
  if (bound && key <= *bound)
    push(key);
}

void EvictionOrder::clear() {
  sorted.clear();
  next = 0;
  heap.clear();
  bound.reset();
}

void EvictionOrder::refill(const std::vector<IdEntry> &entries, size_t count,
                           const std::function<bool(int32_t)> &isHeld) {
  constexpr size_t kParts = 8; // of the slots, so that refills are few
  clear();
  std::vector<Key> keys;
  for (size_t i = 0; i < entries.size(); ++i)
    if (auto slot = static_cast<int32_t>(i);
        entries[i].isUsed() && !isHeld(slot))
      keys.push_back(keyOf(slot, entries[i]));
  if (keys.empty())
    return;
  size_t wanted =
      std::min(std::max(count, entries.size() / kParts), keys.size());
  auto last = keys.begin() + static_cast<std::ptrdiff_t>(wanted) - 1;
  std::nth_element(keys.begin(), last, keys.end());
  bound = *last;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].isUsed())
      if (Key key = keyOf(static_cast<int32_t>(i), entries[i]); key <= *bound)
        sorted.push_back(key);
  std::ranges::sort(sorted);
}

std::vector<int32_t>
EvictionOrder::first(const std::vector<IdEntry> &entries, size_t count,
                     const std::function<bool(int32_t)> &isHeld) {
  std::vector<int32_t> found;
  std::vector<Key> held;
  bool isRefilled = false;
  while (found.size() < count) {
    if (isEmpty()) {
      if (isRefilled)
        break;
      // Slots that were found are used until the caller frees them.
      std::vector<int32_t> taken = found;
      std::ranges::sort(taken);
      auto isTaken = [&](int32_t slot) {
        return std::ranges::binary_search(taken, slot);
      };
      refill(entries, count - found.size(),
             [&](int32_t slot) { return isHeld(slot) || isTaken(slot); });
      std::erase_if(sorted, [&](const Key &key) { return isTaken(key.slot); });
      held.clear(); // are there again, as far as they belong there
      isRefilled = true;
      continue;
    }
    Key key = pop();
    const IdEntry &entry = entries[static_cast<size_t>(key.slot)];
    if (!entry.isUsed() || keyOf(key.slot, entry) != key)
      continue;
    if (!isHeld(key.slot))
      found.push_back(key.slot);
    else
      held.push_back(key);
  }
  for (const Key &key : held)
    push(key);
  return found;
}

} // namespace neuroshard::runtime
