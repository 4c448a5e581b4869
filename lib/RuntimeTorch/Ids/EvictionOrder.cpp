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

void EvictionOrder::refill(std::span<const IdSlot> slots, size_t count,
                           int64_t firstHeld, std::vector<int32_t> taken) {
  constexpr size_t kParts = 8; // of the slots, so that refills are few
  clear();
  std::ranges::sort(taken);
  std::vector<Key> keys;
  auto addKeys = [&](const auto &isWanted) {
    auto nextTaken = taken.begin();
    for (size_t i = 0; i < slots.size(); ++i) {
      auto slot = static_cast<int32_t>(i);
      if (nextTaken != taken.end() && *nextTaken == slot)
        ++nextTaken;
      else if (slots[i].entry.isUsed() && isWanted(slots[i]))
        keys.push_back(keyOf(slot, slots[i].entry));
    }
  };
  addKeys([&](const IdSlot &one) { return one.lastUse < firstHeld; });
  if (keys.empty())
    return;
  size_t wanted = std::min(std::max(count, slots.size() / kParts), keys.size());
  auto last = keys.begin() + static_cast<std::ptrdiff_t>(wanted) - 1;
  std::nth_element(keys.begin(), last, keys.end());
  bound = *last;
  keys.resize(wanted);
  // Those that are held may be let go before the next part.
  addKeys([&](const IdSlot &one) { return one.lastUse >= firstHeld; });
  std::erase_if(keys, [&](const Key &key) { return key > *bound; });
  sorted = std::move(keys);
  std::ranges::sort(sorted);
}

std::vector<int32_t> EvictionOrder::first(std::span<const IdSlot> slots,
                                          size_t count, int64_t firstHeld) {
  std::vector<int32_t> found;
  std::vector<Key> held;
  bool isRefilled = false;
  while (found.size() < count) {
    if (isEmpty()) {
      if (isRefilled)
        break;
      // Slots that were found are used until the caller frees them.
      refill(slots, count - found.size(), firstHeld, found);
      held.clear(); // are there again, as far as they belong there
      isRefilled = true;
      continue;
    }
    Key key = pop();
    const IdSlot &slot = slots[static_cast<size_t>(key.slot)];
    if (!slot.entry.isUsed() || keyOf(key.slot, slot.entry) != key)
      continue;
    if (slot.lastUse < firstHeld)
      found.push_back(key.slot);
    else
      held.push_back(key);
  }
  for (const Key &key : held)
    push(key);
  return found;
}

} // namespace neuroshard::runtime
