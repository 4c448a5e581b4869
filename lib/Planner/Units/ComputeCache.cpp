//===- ComputeCache.cpp - Cache of devices' compute times -----------------===//

#include "ComputeCache.h"

using namespace neuroshard;

bool ComputeCache::find(uint64_t key, ComputeMs &time) {
  Bucket &bucket = buckets[key % buckets.size()];
  std::lock_guard<std::mutex> lock(bucket.mutex);
  auto found = bucket.times.find(key);
  if (found == bucket.times.end())
    return false;
  time = found->second;
  return true;
}

void ComputeCache::insert(uint64_t key, ComputeMs time) {
  Bucket &bucket = buckets[key % buckets.size()];
  std::lock_guard<std::mutex> lock(bucket.mutex);
  bucket.times.emplace(key, time);
}
