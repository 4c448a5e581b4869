//===- GrowCaches.cpp - Gives memory that is left to row caches -----------===//

#include "GrowCaches.h"

#include "Cost/FetchRates.h"
#include "Cost/RowDemands.h"
#include "Memory/CacheMemory.h"
#include "Units/TableRules.h"
#include "neuroshard/Planner/CacheHits.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

using namespace neuroshard;

namespace {

/// Parts in which the memory of a device is given away.
constexpr int64_t kParts = 64;
/// Of a part, rows that no longer spill give back some; it grows by that so
/// often.
constexpr int kRefills = 6;

/// A size of a cache: what the shard takes with it, and the time of its
/// fetches.
struct CacheSize {
  int64_t rows = 0;
  CacheBytes bytes;
  double ms = 0;
};

/// A shard whose cache may grow.
struct GrowingCache {
  Shard *shard = nullptr;
  size_t table = 0;
  const RowDemand *demand = nullptr;
  CacheBytes place;
  int64_t recordBytes = 0;
  size_t host = 0;
  CacheSize now, next; ///< next: with one part more.

  int64_t mostRows() const { return roundUp(shard->rows(), kCacheWays); }
  CacheBytes added() const {
    return {next.bytes.device - now.bytes.device,
            next.bytes.host - now.bytes.host};
  }
  double savedPerByte() const {
    return (now.ms - next.ms) /
           static_cast<double>(std::max<int64_t>(1, added().device));
  }
};

class CacheGrower {
public:
  CacheGrower(const ShardingProblem &problem, ShardingPlan &plan)
      : problem(problem), plan(plan), rules(tableRules(problem, {})),
        features(featuresOfTables(problem)), demands(problem, features),
        rates(problem.topology, 1) {}

  /// Again if shards have moved to device memory, which leaves more of it.
  void run() {
    while (growAll())
      continue;
  }

private:
  /// Returns whether shards have moved to device memory.
  bool growAll() {
    MemoryReport memory = planMemory(problem, plan.shards);
    leftOfHosts.clear();
    for (size_t host = 0; host < memory.hostBytes.size(); ++host)
      leftOfHosts.push_back(problem.topology.hosts[host].memoryBytes -
                            memory.hostBytes[host]);
    bool haveMoved = false;
    std::vector<std::vector<GrowingCache>> ofDevices = growingCaches();
    for (size_t d = 0; d < ofDevices.size(); ++d)
      haveMoved |= grow(d, ofDevices[d],
                        problem.topology.devices[d].memoryBytes -
                            memory.devices[d].peakBytes());
    return haveMoved;
  }

  bool isGiven(const Shard &shard, int table) const {
    return rules[static_cast<size_t>(table)].cacheShare > 0 ||
           std::ranges::any_of(
               problem.constraints.fixedShards,
               [&](const std::string &name) { return name == shard.name; },
               &Shard::name);
  }

  std::vector<std::vector<GrowingCache>> growingCaches() {
    std::vector<std::vector<GrowingCache>> ofDevices(
        problem.topology.devices.size());
    std::unordered_map<std::string_view, int> tableOfName;
    for (size_t i = 0; i < problem.tables.size(); ++i)
      tableOfName.emplace(problem.tables[i].name, static_cast<int>(i));
    for (Shard &shard : plan.shards) {
      int number = tableOfName.at(shard.table);
      if (!hasRowCache(problem.target, shard.tier) || isGiven(shard, number))
        continue;
      auto index = static_cast<size_t>(number);
      auto device = static_cast<size_t>(shard.devices.front());
      const Table &table = problem.tables[index];
      OptimizerStates states = optimizerStates(table.optimizer);
      GrowingCache cache;
      cache.shard = &shard;
      cache.table = index;
      cache.demand = &demands.of(number);
      cache.place = cachePlaceOf(problem, table, shard);
      cache.recordBytes = recordBytes(states, shard.width(), table.elementType);
      cache.host = rates.hostOf(device);
      cache.now = sizeOf(device, cache, shard.cache.rows);
      ofDevices[device].push_back(cache);
    }
    return ofDevices;
  }

  /// What the cache takes with so many rows, with those that spill.
  CacheBytes bytesOf(const GrowingCache &cache, int64_t rows) const {
    int64_t before = std::exchange(cache.shard->cache.rows, rows);
    MemoryTerms terms = shardMemory(problem, problem.tables[cache.table],
                                    features[cache.table], *cache.shard);
    cache.shard->cache.rows = before;
    return {terms.peakBytes(), terms.hostBytes};
  }

  double msOf(size_t device, const GrowingCache &cache, int64_t rows) const {
    CacheUse use = cache.demand->use(cache.shard->rowBegin, cache.shard->rowEnd,
                                     {rows, cache.shard->cache.policy});
    FetchLoad load = fetchOf(cache.shard->tier, use.misses(), cache.recordBytes,
                             problem.mode);
    return rates.hostMemoryMs(device, load) + rates.diskMs(cache.host, load);
  }

  CacheSize sizeOf(size_t device, const GrowingCache &cache,
                   int64_t rows) const {
    return {rows, bytesOf(cache, rows), msOf(device, cache, rows)};
  }

  /// What a part of so many bytes brings.
  void tryPart(size_t device, GrowingCache &cache, int64_t part) const {
    cache.next = cache.now;
    for (int i = 0; i < kRefills; ++i) {
      int64_t rows = (part - cache.added().device) / cache.place.device;
      if (cache.place.host > 0)
        rows = std::min(rows, (leftOfHosts[cache.host] - cache.added().host) /
                                  cache.place.host);
      rows = std::min(rows / kCacheWays * kCacheWays,
                      cache.mostRows() - cache.next.rows);
      if (rows <= 0)
        break;
      cache.next.rows += rows;
      cache.next.bytes = bytesOf(cache, cache.next.rows);
    }
    if (cache.next.rows > cache.now.rows)
      cache.next.ms = msOf(device, cache, cache.next.rows);
  }

  bool stillFits(const GrowingCache &cache, int64_t left) const {
    CacheBytes added = cache.added();
    return added.device <= left &&
           added.host <= std::max<int64_t>(0, leftOfHosts[cache.host]);
  }

  bool grow(size_t device, std::vector<GrowingCache> &caches, int64_t left) {
    if (caches.empty())
      return false;
    // Where no part fits any more, smaller ones may.
    for (int64_t part = left / kParts; part > 0; part /= kParts)
      growBy(device, caches, part, left);
    bool haveMoved = false;
    // A cache of all rows takes more than the rows.
    for (GrowingCache &cache : caches)
      if (cache.now.rows >= cache.mostRows()) {
        cache.shard->tier = Tier::Hbm;
        cache.shard->cache = {};
        haveMoved = true;
      }
    return haveMoved;
  }

  void growBy(size_t device, std::vector<GrowingCache> &caches, int64_t part,
              int64_t &left) {
    for (GrowingCache &cache : caches)
      tryPart(device, cache, part);
    while (left >= part) {
      auto best =
          std::ranges::max_element(caches, {}, &GrowingCache::savedPerByte);
      if (best->savedPerByte() <= 0)
        return;
      if (!stillFits(*best, left)) { // another cache grew on its host
        best->next = best->now;
        continue;
      }
      left -= best->added().device;
      leftOfHosts[best->host] -= best->added().host;
      best->now = best->next;
      best->shard->cache.rows = best->now.rows;
      tryPart(device, *best, part);
    }
  }

  const ShardingProblem &problem;
  ShardingPlan &plan;
  const std::vector<TableRules> rules;
  const std::vector<std::vector<int>> features;
  RowDemands demands;
  FetchRates rates;
  std::vector<int64_t> leftOfHosts;
};

} // namespace

void neuroshard::growCaches(const ShardingProblem &problem,
                            ShardingPlan &plan) {
  CacheGrower(problem, plan).run();
}
