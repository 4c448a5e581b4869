//===- GrowCaches.cpp - Gives memory that is left to row caches -----------===//

#include "GrowCaches.h"

#include "Cost/FetchRates.h"
#include "Cost/RowDemands.h"
#include "Memory/CacheMemory.h"
#include "Units/TableRules.h"
#include "neuroshard/Planner/CacheHits.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

using namespace neuroshard;

namespace {

/// Parts in which the memory of a device is given away.
constexpr int64_t kParts = 64;

/// A shard whose cache may grow.
struct GrowingCache {
  Shard *shard = nullptr;
  const RowDemand *demand = nullptr;
  CachePlace place;
  int64_t recordBytes = 0;
  size_t host = 0;
  double ms = 0; ///< of its fetches now.
  /// With one part more.
  int64_t nextRows = 0;
  double nextMs = 0;

  int64_t mostRows() const { return roundUp(shard->rows(), kCacheWays); }
  double savedPerByte() const {
    return nextRows > shard->cache.rows
               ? (ms - nextMs) /
                     static_cast<double>((nextRows - shard->cache.rows) *
                                         place.bytes.device)
               : 0;
  }
};

class CacheGrower {
public:
  CacheGrower(const ShardingProblem &problem, ShardingPlan &plan)
      : problem(problem), plan(plan), rules(tableRules(problem, {})),
        features(featuresOfTables(problem)), demands(problem, features),
        rates(problem.topology, 1) {}

  void run() {
    MemoryReport memory = planMemory(problem, plan.shards);
    for (size_t host = 0; host < memory.hostBytes.size(); ++host)
      leftOfHosts.push_back(problem.topology.hosts[host].memoryBytes -
                            memory.hostBytes[host]);
    std::vector<std::vector<GrowingCache>> ofDevices = growingCaches();
    for (size_t d = 0; d < ofDevices.size(); ++d)
      grow(d, ofDevices[d],
           problem.topology.devices[d].memoryBytes -
               memory.devices[d].peakBytes());
  }

private:
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
      GrowingCache cache{&shard, &demands.of(number),
                         cachePlaceOf(problem, table, shard)};
      cache.recordBytes = recordBytes(states, shard.width(), table.elementType);
      cache.host = rates.hostOf(device);
      ofDevices[device].push_back(cache);
    }
    return ofDevices;
  }

  double msOf(size_t device, const GrowingCache &cache, int64_t rows) const {
    CacheUse use = cache.demand->use(cache.shard->rowBegin, cache.shard->rowEnd,
                                     {rows, cache.shard->cache.policy});
    FetchLoad load = fetchOf(cache.shard->tier, use.misses(), cache.recordBytes,
                             problem.mode);
    return rates.hostMemoryMs(device, load) + rates.diskMs(cache.host, load);
  }

  /// What a part of so many bytes brings.
  void tryPart(size_t device, GrowingCache &cache, int64_t bytes) const {
    const CacheBytes &place = cache.place.bytes;
    int64_t rows = bytes / place.device;
    if (place.host > 0)
      rows = std::min(rows, leftOfHosts[cache.host] / place.host);
    rows = std::max<int64_t>(0, rows) / kCacheWays * kCacheWays;
    cache.nextRows = std::min(cache.shard->cache.rows + rows, cache.mostRows());
    cache.nextMs = cache.nextRows > cache.shard->cache.rows
                       ? msOf(device, cache, cache.nextRows)
                       : cache.ms;
  }

  bool stillFits(const GrowingCache &cache) const {
    return (cache.nextRows - cache.shard->cache.rows) *
               cache.place.bytes.host <=
           std::max<int64_t>(0, leftOfHosts[cache.host]);
  }

  void grow(size_t device, std::vector<GrowingCache> &caches, int64_t left) {
    if (caches.empty())
      return;
    for (GrowingCache &cache : caches) {
      cache.ms = msOf(device, cache, cache.shard->cache.rows);
      left -= cache.place.roundedUp;
    }
    // Where no part fits any more, smaller ones may.
    for (int64_t part = left / kParts; part > 0; part /= kParts)
      growBy(device, caches, part, left);
    // A cache of all rows takes more than the rows.
    for (GrowingCache &cache : caches)
      if (cache.shard->cache.rows >= cache.mostRows()) {
        cache.shard->tier = Tier::Hbm;
        cache.shard->cache = {};
      }
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
      if (!stillFits(*best)) { // another cache grew on its host
        tryPart(device, *best, part);
        continue;
      }
      int64_t added = best->nextRows - best->shard->cache.rows;
      left -= added * best->place.bytes.device;
      leftOfHosts[best->host] -= added * best->place.bytes.host;
      best->shard->cache.rows = best->nextRows;
      best->ms = best->nextMs;
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
