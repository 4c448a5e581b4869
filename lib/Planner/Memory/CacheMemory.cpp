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

CacheBytes neuroshard::cachePlaceOf(const ShardingProblem &problem,
                                    const Table &table, const Shard &shard) {
  OptimizerStates states = optimizerStates(table.optimizer);
  int64_t width = shard.width();
  if (engineOf(problem) == Engine::Cpu)
    return {cachedRowBytes(states, width, table.elementType), 0};
  return {rowArrayBytes(states, width, table.elementType), kCachePlaceBytes};
}

CacheBytes neuroshard::rowCacheBytes(const ShardingProblem &problem,
                                     const Table &table, const Shard &shard,
                                     int64_t places) {
  CacheBytes place = cachePlaceOf(problem, table, shard);
  if (engineOf(problem) == Engine::Cpu)
    return {places * place.device, 0};
  OptimizerStates states = optimizerStates(table.optimizer);
  auto pages = [&](int64_t rowBytes) {
    return roundUp(places * rowBytes, kGpuPageBytes);
  };
  return {pages(paddedRowBytes(shard.width(), table.elementType)) +
              states.perElement *
                  pages(paddedRowBytes(shard.width(), ElementType::F32)) +
              states.perRow * pages(elementBytes(ElementType::F32)),
          places * place.host};
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
