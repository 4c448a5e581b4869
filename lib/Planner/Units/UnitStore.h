//===- UnitStore.h - Cache of the units made so far -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_UNITSTORE_H
#define NEUROSHARD_LIB_PLANNER_UNITS_UNITSTORE_H

#include "Unit.h"

#include <array>
#include <functional>
#include <mutex>
#include <unordered_map>

namespace neuroshard {

/// A concurrent map from small integer keys to values made on first use.
template <typename Key, typename Value, typename Hash> class OnceMap {
public:
  /// The value of a key. `make` may run twice for one key; the first result
  /// stays.
  template <typename Make> Value get(const Key &key, Make make) {
    Bucket &bucket = buckets[Hash()(key) % buckets.size()];
    {
      std::lock_guard<std::mutex> lock(bucket.mutex);
      auto found = bucket.values.find(key);
      if (found != bucket.values.end())
        return found->second;
    }
    Value value = make();
    std::lock_guard<std::mutex> lock(bucket.mutex);
    return bucket.values.emplace(key, std::move(value)).first->second;
  }

private:
  struct Bucket {
    std::mutex mutex;
    std::unordered_map<Key, Value, Hash> values;
  };
  std::array<Bucket, 16> buckets;
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
  /// Facts of (table, rows, width, replicas); made by `make`.
  std::shared_ptr<const ShardFacts>
  facts(const std::array<int64_t, 4> &size,
        const std::function<std::shared_ptr<const ShardFacts>()> &make) {
    return bySize.get(size, make);
  }

  /// The unit of one rectangle (table, rows, columns).
  UnitPtr unit(const std::array<int64_t, 5> &rectangle,
               const std::function<UnitPtr()> &make) {
    return byRectangle.get(rectangle, make);
  }

private:
  OnceMap<std::array<int64_t, 4>, std::shared_ptr<const ShardFacts>,
          HashNumbers<4>>
      bySize;
  OnceMap<std::array<int64_t, 5>, UnitPtr, HashNumbers<5>> byRectangle;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_UNITSTORE_H
