//===- EvictionOrder.cpp - Which ids lose their rows first ----------------===//

#include "Ids/EvictionOrder.h"

#include <algorithm>

namespace neuroshard::runtime {

EvictionOrder::Key EvictionOrder::keyOf(const IdEntry &entry) const {
  switch (by) {
  case EvictBy::Recency:
    return {entry.last, 0, entry.row};
  case EvictBy::Frequency:
    return {entry.count, entry.last, entry.row};
  case EvictBy::Age:
    break;
  }
  return {entry.since, 0, entry.row};
}

void EvictionOrder::push(Waiting one) {
  heap.push_back(one);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

EvictionOrder::Waiting EvictionOrder::pop() {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  Waiting one = heap.back();
  heap.pop_back();
  return one;
}

void EvictionOrder::note(int32_t slot, const IdEntry &entry) {
  // Being seen changes no age; a key is in the heap once.
  if (by == EvictBy::Age && entry.last != entry.since)
    return;
  Key key = keyOf(entry);
  if (bound && key <= *bound)
    push({key, slot});
}

void EvictionOrder::clear() {
  heap.clear();
  bound.reset();
}

void EvictionOrder::refill(const std::vector<IdEntry> &entries, size_t count,
                           const std::function<bool(int32_t)> &isHeld) {
  constexpr size_t kParts = 16; // of the slots, so that refills are few
  std::vector<Waiting> used;
  std::vector<Key> evictable;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].isUsed())
      continue;
    auto slot = static_cast<int32_t>(i);
    used.push_back({keyOf(entries[i]), slot});
    if (!isHeld(slot))
      evictable.push_back(used.back().key);
  }
  clear();
  if (evictable.empty())
    return;
  size_t wanted =
      std::min(std::max(count, entries.size() / kParts), evictable.size());
  auto last = evictable.begin() + static_cast<std::ptrdiff_t>(wanted) - 1;
  std::nth_element(evictable.begin(), last, evictable.end());
  bound = *last;
  std::erase_if(used, [&](const Waiting &one) { return one.key > *bound; });
  heap = std::move(used);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
}

std::vector<int32_t>
EvictionOrder::first(const std::vector<IdEntry> &entries, size_t count,
                     const std::function<bool(int32_t)> &isHeld) {
  std::vector<int32_t> found;
  std::vector<Waiting> held;
  bool isRefilled = false;
  while (found.size() < count) {
    if (heap.empty()) {
      if (isRefilled)
        break;
      // Slots that were found are used until the caller frees them.
      std::vector<int32_t> sorted = found;
      std::ranges::sort(sorted);
      auto isTaken = [&](int32_t slot) {
        return std::ranges::binary_search(sorted, slot) || isHeld(slot);
      };
      refill(entries, count - found.size(), isTaken);
      std::erase_if(heap, [&](const Waiting &one) {
        return std::ranges::binary_search(sorted, one.slot);
      });
      std::make_heap(heap.begin(), heap.end(), std::greater<>());
      held.clear(); // are in the heap again, as far as they belong there
      isRefilled = true;
      continue;
    }
    Waiting one = pop();
    const IdEntry &entry = entries[static_cast<size_t>(one.slot)];
    if (!entry.isUsed() || keyOf(entry) != one.key)
      continue;
    if (!isHeld(one.slot))
      found.push_back(one.slot);
    else
      held.push_back(one);
  }
  for (const Waiting &one : held)
    push(one);
  return found;
}

} // namespace neuroshard::runtime
