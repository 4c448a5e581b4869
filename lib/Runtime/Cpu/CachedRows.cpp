//===- CachedRows.cpp - Rows that a batch needs in caches -----------------===//

#include "CachedRows.h"

#include <utility>
#include <vector>

namespace neuroshard::runtime {
namespace {

/// What a batch uses of one cache.
struct CacheUse {
  int32_t slot;
  RowCache *cache;
  std::vector<IdRun> runs;
  CacheBatch batch = {};
};

class CpuRowsInUse : public RowsInUse {
public:
  CpuRowsInUse(std::vector<CacheUse> caches, ThreadPool &threads)
      : uses(std::move(caches)) {
    threads.parallelFor(static_cast<int64_t>(uses.size()), [&](int64_t i) {
      CacheUse &use = uses[static_cast<size_t>(i)];
      use.batch = use.cache->fetch(use.runs);
    });
  }
  ~CpuRowsInUse() override {
    for (CacheUse &use : uses)
      use.cache->release(use.batch);
  }
  CpuRowsInUse(const CpuRowsInUse &) = delete;
  CpuRowsInUse &operator=(const CpuRowsInUse &) = delete;

  void wait() override {
    for (CacheUse &use : uses)
      use.cache->wait(use.batch);
  }

  void markChanged(int32_t slot) override {
    for (CacheUse &use : uses)
      if (use.slot == slot)
        use.cache->markChanged(use.batch.places);
  }

private:
  std::vector<CacheUse> uses;
};

} // namespace

std::unique_ptr<RowsInUse>
fetchCachedRows(const nsrt_program &program, std::span<const Shard> shards,
                std::span<const CachedLookup> lookups, ThreadPool &threads) {
  std::vector<std::vector<IdRun>> runs(shards.size());
  for (const CachedLookup &lookup : lookups) {
    const nsrt_lookup_entry &entry = program.lookups[lookup.lookup];
    runs[static_cast<size_t>(entry.slot)].push_back(
        {lookup.ids, lookup.places, lookup.numIds, entry.id_bytes});
  }
  std::vector<CacheUse> uses;
  for (size_t slot = 0; slot < shards.size(); ++slot)
    if (!runs[slot].empty())
      uses.push_back({static_cast<int32_t>(slot), shards[slot].cache(),
                      std::move(runs[slot])});
  return std::make_unique<CpuRowsInUse>(std::move(uses), threads);
}

} // namespace neuroshard::runtime
