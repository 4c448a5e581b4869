//===- TierOptions.cpp - Ways to keep a table in a tier -------------------===//

#include "TierOptions.h"

#include "Cost/FetchRates.h"
#include "Cost/RowDemands.h"
#include "Memory/CacheMemory.h"
#include "Units/TableRules.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/CacheHits.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/ShardWork.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

/// Sizes of a cache that are tried, from one set to all rows.
constexpr int kSizes = 40;

/// All links to host memory, and all disks, as one.
TierRates totalRates(const Topology &topology) {
  TierRates rates;
  for (const Device &device : topology.devices)
    rates.hostGBps +=
        findDeviceClass(topology, device.deviceClass)->hostBandwidthGBps;
  for (const Disk &disk : disksOf(topology)) {
    rates.disks.readsPerSecond += disk.readsPerSecond;
    rates.disks.bandwidthGBps += disk.bandwidthGBps;
  }
  return rates;
}

bool isFree(const TableRules &rules) {
  return !rules.fixed && rules.cacheShare <= 0;
}

/// May the table only be on one device as a whole?
bool isUncut(const ShardingProblem &problem, size_t table) {
  return std::ranges::any_of(
      problem.constraints.tables, [&](const TableConstraint &constraint) {
        return static_cast<size_t>(constraint.table) == table &&
               constraint.allowedKinds == std::vector{ShardingKind::TableWise};
      });
}

/// Bytes that each device has for tables and what row caches share.
std::vector<int64_t> roomOfDevices(const ShardingProblem &problem) {
  std::vector<MemoryTerms> base = deviceBaseMemory(problem);
  std::vector<int64_t> room;
  for (size_t i = 0; i < base.size(); ++i)
    room.push_back(std::max<int64_t>(
        0, problem.topology.devices[i].memoryBytes - base[i].peakBytes()));
  return room;
}

/// How many devices have row caches, and how many of them such of tier "ssd".
struct CachedDevices {
  int all = 0;
  int ofDisk = 0;
};

/// What these caches share, on all devices and all hosts.
TierBytes sharedBy(const ShardingProblem &problem, CachedDevices caches) {
  CacheBytes host = cacheStagingBytes(problem, Tier::Dram);
  CacheBytes disk = cacheStagingBytes(problem, Tier::Ssd);
  int ofHost = caches.all - caches.ofDisk;
  auto sum = [&](int64_t one, int64_t other) {
    return static_cast<double>(ofHost * one + caches.ofDisk * other);
  };
  return {sum(host.device, disk.device), sum(host.host, disk.host), 0};
}

bool contains(std::span<const Tier> tiers, Tier tier) {
  return std::ranges::find(tiers, tier) != tiers.end();
}

/// The options of one shard.
class OptionMaker {
public:
  OptionMaker(const ShardingProblem &problem, const Table &table,
              const std::vector<int> &features, const RowDemand &demand,
              const Shard &shard, const TierRates &rates)
      : problem(problem), table(table), features(features), demand(demand),
        shard(shard), rates(rates) {}

  std::vector<TierOption> make(std::span<const Tier> tiers) const {
    std::vector<TierOption> options = {
        {Tier::Hbm, 0, bytesIn(Tier::Hbm, 0), 0}};
    for (int64_t rows : sizes()) {
      CacheUse use =
          demand.use(shard.rowBegin, shard.rowEnd, {rows, CachePolicy::Lru});
      for (Tier tier : tiers) {
        FetchLoad load = fetchOf(tier, use.misses(),
                                 recordBytes(optimizerStates(table.optimizer),
                                             shard.width(), table.elementType),
                                 problem.mode);
        options.push_back({tier, rows, bytesIn(tier, rows), rates.msOf(load)});
      }
    }
    return options;
  }

private:
  TierBytes bytesIn(Tier tier, int64_t cacheRows) const {
    Shard there = shard;
    there.tier = tier;
    there.cache.rows = cacheRows;
    return tierBytes(shardMemory(problem, table, features, there));
  }

  std::vector<int64_t> sizes() const {
    int64_t most = roundUp(shard.rows(), kCacheWays);
    double factor =
        std::pow(static_cast<double>(most) / static_cast<double>(kCacheWays),
                 1.0 / kSizes);
    std::vector<int64_t> sizes = {kCacheWays};
    for (int i = 1; i < kSizes; ++i) {
      auto rows = roundUp(static_cast<int64_t>(static_cast<double>(kCacheWays) *
                                               std::pow(factor, i)),
                          kCacheWays);
      if (rows > sizes.back() && rows < most)
        sizes.push_back(rows);
    }
    if (most > sizes.back())
      sizes.push_back(most);
    return sizes;
  }

  const ShardingProblem &problem;
  const Table &table;
  const std::vector<int> &features;
  const RowDemand &demand;
  const Shard &shard;
  const TierRates &rates;
};

/// Of a table with shards written by hand or a cache share of its own.
TierBytes givenBytes(const ShardingProblem &problem, size_t index,
                     const std::vector<int> &features,
                     const TableRules &rules) {
  const Table &table = problem.tables[index];
  TierBytes bytes;
  double covered = 0;
  for (const Shard &shard : problem.constraints.fixedShards) {
    if (shard.table != table.name)
      continue;
    TierBytes one = tierBytes(shardMemory(problem, table, features, shard));
    for (size_t copy = 0; copy < shard.devices.size(); ++copy)
      bytes += one;
    covered += elementShare(table, shard);
  }
  Shard rest = wholeOn(table, 0);
  followRules(rules, rest);
  TierBytes whole = tierBytes(shardMemory(problem, table, features, rest));
  double left = std::max(0.0, 1 - covered);
  bytes += {left * whole.device, left * whole.host, left * whole.disk};
  return bytes;
}

} // namespace

double TierRates::msOf(const FetchLoad &load) const {
  return hostMemoryMs(load, hostGBps) + diskMs(load, disks);
}

TierBytes neuroshard::tierBytes(const MemoryTerms &terms) {
  return {static_cast<double>(terms.peakBytes()),
          static_cast<double>(terms.hostBytes),
          static_cast<double>(terms.diskBytes)};
}

std::vector<TierOption>
neuroshard::shardOptions(const ShardingProblem &problem, const Table &table,
                         const std::vector<int> &features,
                         const RowDemand &demand, const Shard &shard,
                         const TierRates &rates, std::span<const Tier> tiers) {
  return OptionMaker(problem, table, features, demand, shard, rates)
      .make(tiers);
}

std::vector<TieredTable> neuroshard::tierOptions(const ShardingProblem &problem,
                                                 std::span<const Tier> tiers,
                                                 Cuts cuts) {
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  std::vector<TableRules> rules = tableRules(problem, {});
  TierRates rates = totalRates(problem.topology);
  std::vector<TieredTable> tables;
  auto room = static_cast<double>(std::ranges::max(roomOfDevices(problem)));
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    if (!isFree(rules[i]))
      continue;
    TieredTable &table = tables.emplace_back();
    table.table = static_cast<int>(i);
    RowDemand demand = rowDemandOf(problem, table.table, features[i]);
    const Table &source = problem.tables[i];
    table.options = shardOptions(problem, source, features[i], demand,
                                 wholeOn(source, 0), rates, tiers);
    auto isTooLarge = [&](const TierOption &option) {
      return option.bytes.device +
                 static_cast<double>(
                     cacheStagingBytes(problem, option.tier).device) >
             room;
    };
    if ((cuts == Cuts::None || isUncut(problem, i)) &&
        !std::ranges::all_of(table.options, isTooLarge))
      std::erase_if(table.options, isTooLarge);
  }
  return tables;
}

/// Without what row caches share.
static TierBytes roomWithoutCaches(const ShardingProblem &problem) {
  TierBytes room;
  for (int64_t bytes : roomOfDevices(problem))
    room.device += static_cast<double>(bytes);
  for (int64_t bytes : idMapMemory(problem))
    room.host -= static_cast<double>(bytes);
  for (const Host &host : problem.topology.hosts) {
    room.host += static_cast<double>(host.memoryBytes);
    room.disk += host.disk.bytes == 0 ? std::numeric_limits<double>::infinity()
                                      : static_cast<double>(host.disk.bytes);
  }
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  std::vector<TableRules> rules = tableRules(problem, {});
  for (size_t i = 0; i < problem.tables.size(); ++i)
    if (!isFree(rules[i]))
      room -= givenBytes(problem, i, features[i], rules[i]);
  return room;
}

TierBytes neuroshard::roomForTables(const ShardingProblem &problem,
                                    std::span<const Tier> tiers) {
  return roomsForTables(problem, tiers).front();
}

std::vector<TierBytes>
neuroshard::roomsForTables(const ShardingProblem &problem,
                           std::span<const Tier> tiers) {
  // Less of a room is not worth a search with other numbers of devices.
  constexpr double kMuch = 0.01;
  const TierBytes room = roomWithoutCaches(problem);
  int devices = problem.topology.deviceCount();
  std::vector<TierBytes> rooms;
  auto add = [&](CachedDevices caches) {
    TierBytes one = room;
    one -= sharedBy(problem, caches);
    if (caches.ofDisk == 0)
      one.disk = std::min(0.0, one.disk);
    rooms.push_back(one);
  };
  bool hasDisk = contains(tiers, Tier::Ssd);
  add({devices, hasDisk ? devices : 0});
  const TierBytes &least = rooms.front();
  if (room.device - least.device < kMuch * room.device &&
      room.host - least.host < kMuch * room.host)
    return rooms;
  for (int all = devices; all > 0; all -= std::max(1, devices / 4)) {
    if (hasDisk && all < devices)
      add({all, all});
    if (!contains(tiers, Tier::Dram))
      continue;
    if (hasDisk && all > 1)
      add({all, 1});
    if (hasDisk || all < devices)
      add({all, 0});
  }
  return rooms;
}

std::vector<Tier> neuroshard::usableTiers(const ShardingProblem &problem,
                                          std::span<const Tier> tiers) {
  bool hasCpus =
      std::ranges::any_of(problem.topology.devices, [&](const Device &device) {
        return isCpu(problem.topology, device);
      });
  std::vector<Tier> usable;
  for (Tier tier : tiers)
    if (runsTier(problem.target, tier) && hasRowCache(problem.target, tier) &&
        !(tier == Tier::Dram && hasCpus))
      usable.push_back(tier);
  return usable;
}
