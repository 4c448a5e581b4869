//===- ComputeCache.h - Cache of devices' compute times ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_COMPUTECACHE_H
#define NEUROSHARD_LIB_PLANNER_UNITS_COMPUTECACHE_H

#include "neuroshard/Planner/CostModel.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace neuroshard {

/// Cache of the compute times of devices, by contentsKey(). Thread-safe.
class ComputeCache {
public:
  bool find(uint64_t key, ComputeMs &time);
  void insert(uint64_t key, ComputeMs time);

private:
  struct Bucket {
    std::mutex mutex;
    std::unordered_map<uint64_t, ComputeMs> times;
  };
  std::array<Bucket, 16> buckets;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_COMPUTECACHE_H
