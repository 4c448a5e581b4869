//===- ComputeBatch.cpp - Many devices' compute in one model call ---------===//

#include "ComputeBatch.h"

#include "ComputeCache.h"

#include <algorithm>

using namespace neuroshard;

ComputeBatch::ComputeBatch(const SearchContext &context)
    : context(context), embedding(context.model.sumEmbedding()),
      caching(!embedding || embedding->size() > kSmallEmbedding),
      classes(context.usedClasses.size()) {}

void ComputeBatch::clear() {
  for (PerClass &one : classes) {
    one.sums.clear();
    one.counts.clear();
    one.results.clear();
    one.keys.clear();
  }
  sets.clear();
  setResults.clear();
  setKeys.clear();
  results.clear();
}

/// Adds a result, from the cache if it is there.
bool ComputeBatch::known(uint64_t key) {
  results.emplace_back();
  return caching && key && context.computeCache().find(key, results.back());
}

size_t ComputeBatch::add(std::span<const double> sum, const Unit *unit,
                         int shardCount, size_t classIndex, uint64_t key) {
  if (known(key))
    return results.size() - 1;
  PerClass &one = classes[classIndex];
  size_t begin = one.sums.size();
  one.sums.insert(one.sums.end(), sum.begin(), sum.end());
  if (unit)
    for (size_t k = 0; k < sum.size(); ++k)
      one.sums[begin + k] += unit->embedding[classIndex * sum.size() + k];
  one.counts.push_back(shardCount);
  one.results.push_back(results.size() - 1);
  one.keys.push_back(key);
  return results.size() - 1;
}

size_t ComputeBatch::add(std::span<const Unit *const> units, size_t classIndex,
                         uint64_t key) {
  if (known(key))
    return results.size() - 1;
  ShardSet &set = sets.emplace_back();
  set.deviceClass = context.usedClasses[classIndex];
  for (const Unit *unit : units)
    for (const ShardWork &work : unit->works)
      set.shards.push_back(&work);
  setResults.push_back(results.size() - 1);
  setKeys.push_back(key);
  return results.size() - 1;
}

double *ComputeBatch::addRow(size_t classIndex, size_t &result,
                             int *&shardCount) {
  PerClass &one = classes[classIndex];
  size_t begin = one.sums.size();
  one.sums.resize(begin + static_cast<size_t>(embedding->size()));
  result = results.size();
  results.emplace_back();
  shardCount = &one.counts.emplace_back();
  one.results.push_back(result);
  one.keys.push_back(0);
  return one.sums.data() + begin;
}

size_t ComputeBatch::add(std::vector<const ShardWork *> shards,
                         size_t classIndex) {
  sets.push_back({context.usedClasses[classIndex], std::move(shards)});
  setResults.push_back(results.size());
  setKeys.push_back(0);
  results.emplace_back();
  return setResults.back();
}

void ComputeBatch::run() {
  auto keep = [&](size_t result, uint64_t key, ComputeMs time) {
    results[result] = time;
    if (caching && key)
      context.computeCache().insert(key, time);
  };
  for (size_t c = 0; c < classes.size(); ++c) {
    PerClass &one = classes[c];
    if (one.counts.empty())
      continue;
    one.times.resize(one.counts.size());
    embedding->heads(one.sums, one.counts, *context.usedClasses[c], one.times);
    for (size_t i = 0; i < one.times.size(); ++i)
      keep(one.results[i], one.keys[i], one.times[i]);
  }
  if (sets.empty())
    return;
  std::vector<ComputeMs> times(sets.size());
  context.model.computeMs(sets, times);
  for (size_t i = 0; i < times.size(); ++i)
    keep(setResults[i], setKeys[i], times[i]);
}

uint64_t neuroshard::contentsKey(uint64_t contents, const Unit &added) {
  uint64_t hash = (contents ^ added.sizeKey) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}
