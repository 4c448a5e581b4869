//===- UnitStore.h - Cache of the units made so far -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_UNITSTORE_H
#define NEUROSHARD_LIB_PLANNER_UNITS_UNITSTORE_H

#include "Unit.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace neuroshard {

/// A concurrent map from small integer keys to values made on first use. It
/// keeps the values in the order in which they were made: a search leaves
/// millions of them, and freeing them in the order of a hash takes seconds.
template <typename Key, typename Value, typename Hash> class OnceMap {
public:
  /// The value of a key. `make` may run twice for one key; the first result
  /// stays.
  template <typename Make> Value get(const Key &key, Make make) {
    size_t hash = Hash()(key);
    Bucket &bucket = buckets[hash % buckets.size()];
    {
      std::lock_guard<std::mutex> lock(bucket.mutex);
      if (const Value *found = bucket.find(key, hash))
        return *found;
    }
    Value value = make();
    std::lock_guard<std::mutex> lock(bucket.mutex);
    const Value *found = bucket.find(key, hash);
    return found ? *found : bucket.add(key, hash, std::move(value));
  }

  /// Forgets all values and calls tick() after every few thousand. No other
  /// thread may use the map meanwhile.
  template <typename Tick> void clear(Tick tick) {
    for (Bucket &bucket : buckets)
      bucket.clear(tick);
  }

private:
  /// Open addressing: a key's entry is the first of its slots' entries that has
  /// the key.
  class Bucket {
  public:
    const Value *find(const Key &key, size_t hash) const {
      if (slots.empty())
        return nullptr;
      for (size_t slot = firstSlot(hash); slots[slot]; slot = next(slot))
        if (const auto &[known, value] = entries[slots[slot] - 1]; known == key)
          return &value;
      return nullptr;
    }
    const Value &add(const Key &key, size_t hash, Value value) {
      if (2 * (entries.size() + 1) > slots.size())
        grow();
      entries.emplace_back(key, std::move(value));
      occupy(hash, static_cast<uint32_t>(entries.size()));
      return entries.back().second;
    }

    template <typename Tick> void clear(Tick tick) {
      constexpr size_t kBetweenTicks = 4096;
      slots.clear();
      for (size_t i = 1; !entries.empty(); ++i) {
        entries.pop_front();
        if (i % kBetweenTicks == 0)
          tick();
      }
    }

    std::mutex mutex;

  private:
    // The lowest bits of a hash choose the bucket.
    size_t firstSlot(size_t hash) const {
      return (hash / kBuckets) & (slots.size() - 1);
    }
    size_t next(size_t slot) const { return (slot + 1) & (slots.size() - 1); }
    void occupy(size_t hash, uint32_t number) {
      size_t slot = firstSlot(hash);
      while (slots[slot])
        slot = next(slot);
      slots[slot] = number;
    }
    void grow() {
      slots.assign(std::max<size_t>(16, 2 * slots.size()), 0);
      for (size_t i = 0; i < entries.size(); ++i)
        occupy(Hash()(entries[i].first), static_cast<uint32_t>(i + 1));
    }

    std::deque<std::pair<Key, Value>> entries;
    /// Number of an entry, from 1, or 0. A power of two of them.
    std::vector<uint32_t> slots;
  };

  static constexpr size_t kBuckets = 16;
  std::array<Bucket, kBuckets> buckets;
};

template <size_t N> struct HashNumbers {
  size_t operator()(const std::array<int64_t, N> &numbers) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (int64_t number : numbers) {
      hash ^= static_cast<uint64_t>(number);
      hash *= 0xbf58476d1ce4e5b9u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

/// Cache of the units and shard facts of a search. Thread-safe.
class UnitStore {
public:
  /// Facts of (table, rows, width, replicas, first row where it matters); made
  /// by `make`.
  std::shared_ptr<const ShardFacts>
  facts(const std::array<int64_t, 5> &size,
        const std::function<std::shared_ptr<const ShardFacts>()> &make) {
    return bySize.get(size, make);
  }

  /// The unit of one rectangle (table, rows, columns).
  UnitPtr unit(const std::array<int64_t, 5> &rectangle,
               const std::function<UnitPtr()> &make) {
    return byRectangle.get(rectangle, make);
  }

  /// See OnceMap::clear().
  void clear(const std::function<void()> &tick) {
    byRectangle.clear(tick);
    bySize.clear(tick);
  }

private:
  OnceMap<std::array<int64_t, 5>, std::shared_ptr<const ShardFacts>,
          HashNumbers<5>>
      bySize;
  OnceMap<std::array<int64_t, 5>, UnitPtr, HashNumbers<5>> byRectangle;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_UNITSTORE_H
