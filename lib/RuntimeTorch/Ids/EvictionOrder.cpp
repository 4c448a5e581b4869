//===- EvictionOrder.cpp - Which ids lose their rows first ----------------===//

#include "Ids/EvictionOrder.h"

#include <algorithm>

namespace neuroshard::runtime {

EvictionOrder::Key EvictionOrder::keyOf(int32_t slot,
                                        const IdSlots &slots) const {
  const auto place = static_cast<size_t>(slot);
  const IdSlots::Use &use = slots.uses[place];
  switch (by) {
  case EvictBy::Recency:
    return {use.last, 0, slot};
  case EvictBy::Frequency:
    return {use.count, use.last, slot};
  case EvictBy::Age:
    break;
  }
  return {slots.origins[place].since, 0, slot};
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

void EvictionOrder::note(int32_t slot, const IdSlots &slots) {
  const auto place = static_cast<size_t>(slot);
  if (!bound)
    return;
  // Being seen changes no age; a key is there once.
  if (by == EvictBy::Age &&
      slots.uses[place].last != slots.origins[place].since)
    return;
  if (Key key = keyOf(slot, slots); key <= *bound)
    push(key);
}

void EvictionOrder::clear() {
  sorted.clear();
  next = 0;
  heap.clear();
  bound.reset();
}

/// The key that about `wanted` slots are up to which are not held, by a sample.
std::optional<EvictionOrder::Key>
EvictionOrder::guessBound(const IdSlots &slots, size_t wanted,
                          int64_t firstHeld) const {
  constexpr size_t kSample = 1024; // slots
  const size_t step = std::max<size_t>(1, slots.size() / kSample);
  std::vector<Key> sample;
  for (size_t i = step / 2; i < slots.size(); i += step)
    if (slots.isUsed(i) && slots.uses[i].lastUse < firstHeld)
      sample.push_back(keyOf(static_cast<int32_t>(i), slots));
  if (wanted / step >= sample.size())
    return std::nullopt;
  auto guess = sample.begin() + static_cast<std::ptrdiff_t>(wanted / step);
  std::nth_element(sample.begin(), guess, sample.end());
  return *guess;
}

void EvictionOrder::refill(const IdSlots &slots, size_t count,
                           int64_t firstHeld, std::vector<int32_t> taken) {
  constexpr size_t kParts = 8; // of the slots, so that refills are few
  std::vector<Key> keys = std::move(sorted); // its memory
  clear();
  std::ranges::sort(taken);
  size_t numFree = 0; // that are not held
  auto findKeys = [&] {
    keys.clear();
    numFree = 0;
    auto nextTaken = taken.begin();
    for (size_t i = 0; i < slots.size(); ++i) {
      auto slot = static_cast<int32_t>(i);
      if (nextTaken != taken.end() && *nextTaken == slot) {
        ++nextTaken;
        continue;
      }
      if (!slots.isUsed(i))
        continue;
      Key key = keyOf(slot, slots);
      if (bound && key > *bound)
        continue;
      // Those that are held may be let go before the next part.
      numFree += slots.uses[i].lastUse < firstHeld;
      keys.push_back(key);
    }
  };
  bound = guessBound(slots, std::max(count, slots.size() / kParts), firstHeld);
  findKeys();
  if (bound && numFree < count) {
    bound.reset();
    findKeys();
  }
  if (numFree == 0)
    return clear();
  if (!bound)
    bound = *std::ranges::max_element(keys);
  sorted = std::move(keys);
  std::ranges::sort(sorted);
}

std::vector<int32_t> EvictionOrder::first(const IdSlots &slots, size_t count,
                                          int64_t firstHeld) {
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
    const auto place = static_cast<size_t>(key.slot);
    if (!slots.isUsed(place) || keyOf(key.slot, slots) != key)
      continue;
    if (slots.uses[place].lastUse < firstHeld)
      found.push_back(key.slot);
    else
      held.push_back(key);
  }
  for (const Key &key : held)
    push(key);
  return found;
}

} // namespace neuroshard::runtime
