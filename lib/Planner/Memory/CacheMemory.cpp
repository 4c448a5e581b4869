//===- CacheMemory.cpp - Memory of row caches -----------------------------===//

#include "CacheMemory.h"

#include "UpdateMemory.h"
#include "neuroshard/Model/CacheBuffers.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>

using namespace neuroshard;

CacheBytes neuroshard::mostOf(CacheBytes one, CacheBytes other) {
  return {std::max(one.device, other.device), std::max(one.host, other.host)};
}

CacheBytes neuroshard::rowCacheBytes(const ShardingProblem &problem,
                                     const Table &table, const Shard &shard,
                                     int64_t places) {
  OptimizerStates states = optimizerStates(table.optimizer);
  if (engineOf(problem) == Engine::Cpu)
    return {places * cachedRowBytes(states, shard.width(), table.elementType),
            0};
  auto pages = [&](int64_t rowBytes) {
    return roundUp(places * rowBytes, kGpuPageBytes);
  };
  return {pages(paddedRowBytes(shard.width(), table.elementType)) +
              states.perElement *
                  pages(paddedRowBytes(shard.width(), ElementType::F32)) +
              states.perRow * pages(elementBytes(ElementType::F32)),
          places * kCachePlaceBytes};
}

CacheBytes neuroshard::cacheStagingBytes(const ShardingProblem &problem,
                                         Tier tier) {
  if (problem.memoryModel == MemoryModel::WeightsOnly ||
      !hasRowCache(problem.target, tier))
    return {};
  int64_t files = tier == Tier::Ssd ? kFileStagingBytes : 0;
  if (engineOf(problem) == Engine::Cpu)
    return {files, 0};
  // Rows and their places on the GPU; pinned, rows and two chunks of places.
  return {2 * kRowStagingBytes, 2 * kRowStagingBytes + files};
}

CacheBytes neuroshard::cacheStagingBytes(const ShardingProblem &problem,
                                         std::span<const Tier> tiers) {
  CacheBytes most;
  for (Tier tier : tiers)
    most = mostOf(most, cacheStagingBytes(problem, tier));
  return most;
}

CacheBytes neuroshard::plannedStagingBytes(const ShardingProblem &problem,
                                           std::span<const Shard> previous) {
  CacheBytes most;
  auto add = [&](Tier tier) {
    most = mostOf(most, cacheStagingBytes(problem, tier));
  };
  for (const Shard &shard : problem.constraints.fixedShards)
    add(shard.tier);
  for (const Shard &shard : previous)
    add(shard.tier);
  for (const TableConstraint &constraint : problem.constraints.tables)
    if (constraint.cacheShare > 0)
      add(cacheTier(problem.topology, constraint));
  return most;
}
