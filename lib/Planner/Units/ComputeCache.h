//===- ComputeCache.h - Compute times of device contents seen ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_COMPUTECACHE_H
#define NEUROSHARD_LIB_PLANNER_UNITS_COMPUTECACHE_H

#include "neuroshard/Planner/CostModel.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace neuroshard {

/// Compute times of device contents seen before, by contentsKey(). Thread-safe.
class ComputeCache {
public:
  bool find(uint64_t key, ComputeMs &time);
  void insert(uint64_t key, ComputeMs time);

private:
  struct Part {
    std::mutex mutex;
    std::unordered_map<uint64_t, ComputeMs> times;
  };
  std::array<Part, 16> parts;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_COMPUTECACHE_H
