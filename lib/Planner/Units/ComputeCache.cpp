//===- ComputeCache.cpp - Compute times of device contents seen -----------===//

#include "ComputeCache.h"

using namespace neuroshard;

bool ComputeCache::find(uint64_t key, ComputeMs &time) {
  Part &part = parts[key % parts.size()];
  std::lock_guard<std::mutex> lock(part.mutex);
  auto found = part.times.find(key);
  if (found == part.times.end())
    return false;
  time = found->second;
  return true;
}

void ComputeCache::insert(uint64_t key, ComputeMs time) {
  Part &part = parts[key % parts.size()];
  std::lock_guard<std::mutex> lock(part.mutex);
  part.times.emplace(key, time);
}
