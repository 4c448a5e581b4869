//===- ImproveTiers.cpp - Tiers, caches and places of a plan --------------===//

#include "ImproveTiers.h"

#include "ChooseTiers.h"
#include "Cost/RowDemands.h"
#include "GrowCaches.h"
#include "Memory/CacheMemory.h"
#include "Units/PlanCost.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

using namespace neuroshard;

namespace {

/// A step must lower the cost by this share.
constexpr double kLeastGain = 1e-6;
/// Growing caches lowers a cost by no more than this share: sizes that are
/// chosen differ by less.
constexpr double kGrowth = 0.1;
/// Of so many shards of a device each is tried in each tier.
constexpr size_t kFewShards = 8;

class TierImprover {
public:
  TierImprover(const SearchContext &context,
               std::span<const TieredTable> tables, std::span<const Tier> tiers,
               const std::function<bool()> &isOver, ShardingPlan &plan)
      : context(context), problem(context.problem), tiers(tiers),
        isOver(isOver), best(plan), isFreeTable(problem.tables.size()),
        disks(disksOf(problem.topology)), sets(tierSets(tiers)) {
    for (const TieredTable &table : tables)
      isFreeTable[static_cast<size_t>(table.table)] = true;
    for (size_t i = 0; i < plan.shards.size(); ++i)
      if (isFree(plan.shards[i]))
        freeShards.push_back(i);
  }

  void run() {
    costMs = planCostMs(context, best);
    ShardingPlan chosen = best;
    for (int device = 0; device < context.deviceCount; ++device)
      chooseOn(chosen, device);
    take(std::move(chosen));
    for (bool improves = true; improves && !isOver();) {
      improves = false;
      for (size_t i = 0; i < freeShards.size() && !isOver(); ++i)
        improves |= improve(i);
    }
  }

private:
  bool isFree(const Shard &shard) const {
    return isFreeTable[tableOf(shard)] && shard.devices.size() == 1 &&
           (shard.tier == Tier::Hbm ||
            std::ranges::find(tiers, shard.tier) != tiers.end());
  }

  size_t tableOf(const Shard &shard) const {
    return static_cast<size_t>(context.tableIndex(shard.table));
  }

  /// Moves a shard to each other device, and lets it change places with each
  /// shard there.
  bool improve(size_t number) {
    bool improves = false;
    size_t shard = freeShards[number];
    for (int device = 0; device < context.deviceCount; ++device)
      if (device != deviceOf(best, shard)) {
        ShardingPlan moved = best;
        int from = deviceOf(best, shard);
        moved.shards[shard].devices = {device};
        improves |= takeChosen(std::move(moved), from, device);
      }
    for (size_t k = number + 1; k < freeShards.size(); ++k) {
      size_t other = freeShards[k];
      int from = deviceOf(best, shard), to = deviceOf(best, other);
      if (from == to)
        continue;
      ShardingPlan swapped = best;
      std::swap(swapped.shards[shard].devices, swapped.shards[other].devices);
      improves |= takeChosen(std::move(swapped), from, to);
    }
    return improves;
  }

  static int deviceOf(const ShardingPlan &plan, size_t shard) {
    return plan.shards[shard].devices.front();
  }

  /// With tiers and caches chosen anew on two devices. The second may leave
  /// more of hosts to the first.
  bool takeChosen(ShardingPlan plan, int one, int other) {
    for (int device : {one, other, one})
      chooseOn(plan, device);
    return take(std::move(plan));
  }

  /// Makes a plan the best one if it is cheaper.
  bool take(ShardingPlan plan) {
    if (planCostMs(context, plan) * (1 - kGrowth) >= costMs)
      return false;
    growCaches(problem, plan);
    double cost = planCostMs(context, plan);
    if (cost >= costMs * (1 - kLeastGain) || !verify(plan, problem).empty())
      return false;
    best = std::move(plan);
    costMs = cost;
    return true;
  }

  const std::vector<TierOption> &optionsOf(const ShardingPlan &plan,
                                           size_t index, int device) {
    auto [found, isNew] = options.try_emplace({index, device});
    if (!isNew)
      return found->second;
    const Shard &shard = plan.shards[index];
    size_t table = tableOf(shard);
    const Device &where = problem.topology.devices[static_cast<size_t>(device)];
    TierRates rates{
        findDeviceClass(problem.topology, where.deviceClass)->hostBandwidthGBps,
        disks[static_cast<size_t>(where.host)]};
    found->second = shardOptions(
        problem, problem.tables[table], context.featuresOf(shardTable(table)),
        context.demands()->of(shardTable(table)), shard, rates, tiers);
    if (shard.rows() > kMaxCachedShardRows)
      found->second.resize(1);
    return found->second;
  }

  static int shardTable(size_t table) { return static_cast<int>(table); }

  /// What the shard takes now.
  TierBytes bytesOf(const Shard &shard) const {
    size_t table = tableOf(shard);
    return tierBytes(shardMemory(problem, problem.tables[table],
                                 context.featuresOf(shardTable(table)), shard));
  }

  /// Chooses tiers and caches of the free shards on a device so that their
  /// fetches take least. Leaves them if none fit.
  void chooseOn(ShardingPlan &plan, int device) {
    auto d = static_cast<size_t>(device);
    auto host = static_cast<size_t>(problem.topology.devices[d].host);
    MemoryReport memory = planMemory(problem, plan.shards);
    const Host &its = problem.topology.hosts[host];
    TierBytes room{
        static_cast<double>(problem.topology.devices[d].memoryBytes -
                            memory.devices[d].peakBytes()),
        static_cast<double>(its.memoryBytes - memory.hostBytes[host]),
        its.disk.bytes == 0
            ? std::numeric_limits<double>::infinity()
            : static_cast<double>(its.disk.bytes - memory.diskBytes[host])};
    CacheBytes staging, stays;
    std::vector<size_t> chosen;
    for (size_t i = 0; i < plan.shards.size(); ++i) {
      const Shard &shard = plan.shards[i];
      if (std::ranges::find(shard.devices, device) == shard.devices.end())
        continue;
      CacheBytes one = cacheStagingBytes(problem, shard.tier);
      staging = mostOf(staging, one);
      if (!isFree(shard)) {
        stays = mostOf(stays, one);
        continue;
      }
      chosen.push_back(i);
      room += bytesOf(shard);
    }
    room += bytesOf(staging);
    apply(plan, chosen, chooseBest(plan, device, chosen, {room, stays}));
  }

  /// What the free shards of a device and what their caches share may take, and
  /// what the caches of others share.
  struct DeviceRoom {
    TierBytes bytes;
    CacheBytes shared;
  };
  /// Tiers that each of some shards may be in.
  using AllowedTiers = std::vector<std::vector<Tier>>;
  /// An option of each of some shards.
  struct ShardChoice {
    std::vector<TierOption> options;
    double ms = std::numeric_limits<double>::infinity();
  };

  /// The choice whose fetches take least; then with one shard after the other
  /// in another tier, since the chooser takes what saves most per byte first.
  ShardChoice chooseBest(const ShardingPlan &plan, int device,
                         const std::vector<size_t> &shards,
                         const DeviceRoom &room) {
    ShardChoice least;
    AllowedTiers allowed;
    auto tryTiers = [&](const AllowedTiers &some) {
      ShardChoice choice = chooseIn(plan, device, shards, some, room);
      if (choice.ms >= least.ms)
        return false;
      least = std::move(choice);
      allowed = some;
      return true;
    };
    for (const std::vector<Tier> &some : sets)
      tryTiers({shards.size(), some});
    if (shards.size() > kFewShards || !std::isfinite(least.ms))
      return least;
    for (bool improves = true; improves;) {
      improves = false;
      for (size_t i = 0; i < shards.size(); ++i)
        for (const std::vector<Tier> &only : sets) {
          Tier now = least.options[i].tier;
          if (only.size() != 1 || only.front() == now)
            continue;
          AllowedTiers other(shards.size(), sets.back());
          other[i] = only;
          improves |= tryTiers(other);
        }
    }
    return least;
  }

  /// The options with the least time of fetches in these tiers.
  ShardChoice chooseIn(const ShardingPlan &plan, int device,
                       const std::vector<size_t> &shards,
                       const AllowedTiers &allowed, const DeviceRoom &room) {
    TierBytes rest = room.bytes;
    CacheBytes shared = room.shared;
    std::vector<TieredTable> choices;
    for (size_t i = 0; i < shards.size(); ++i) {
      TieredTable &one = choices.emplace_back();
      for (Tier tier : allowed[i])
        shared = mostOf(shared, cacheStagingBytes(problem, tier));
      for (const TierOption &option : optionsOf(plan, shards[i], device))
        if (std::ranges::find(allowed[i], option.tier) != allowed[i].end())
          one.options.push_back(option);
      if (one.options.empty())
        return {};
    }
    rest -= bytesOf(shared);
    std::optional<TierChoice> choice = chooseTiers(choices, rest);
    if (!choice)
      return {};
    ShardChoice result;
    result.ms = choice->ms;
    for (size_t i = 0; i < shards.size(); ++i)
      result.options.push_back(choices[i].options[choice->options[i]]);
    return result;
  }

  static void apply(ShardingPlan &plan, const std::vector<size_t> &shards,
                    const ShardChoice &choice) {
    for (size_t i = 0; i < choice.options.size(); ++i) {
      Shard &shard = plan.shards[shards[i]];
      shard.tier = choice.options[i].tier;
      shard.cache = {choice.options[i].cacheRows, CachePolicy::Lru};
    }
  }

  static TierBytes bytesOf(const CacheBytes &bytes) {
    return {static_cast<double>(bytes.device), static_cast<double>(bytes.host),
            0};
  }

  /// Device memory alone, each lower tier alone, and sets that all shards of a
  /// device may be in; the last has all.
  static std::vector<std::vector<Tier>> tierSets(std::span<const Tier> lower) {
    std::vector<std::vector<Tier>> sets = {{Tier::Hbm}};
    for (Tier tier : lower) {
      sets.push_back({tier});
      sets.push_back({Tier::Hbm, tier});
    }
    if (lower.size() > 1) {
      sets.push_back({Tier::Hbm});
      sets.back().insert(sets.back().end(), lower.begin(), lower.end());
    }
    return sets;
  }

  const SearchContext &context;
  const ShardingProblem &problem;
  std::span<const Tier> tiers;
  const std::function<bool()> &isOver;
  ShardingPlan &best;
  double costMs = 0;
  std::vector<bool> isFreeTable;
  std::vector<size_t> freeShards;
  std::vector<Disk> disks;
  std::vector<std::vector<Tier>> sets;
  /// By shard and device.
  std::map<std::pair<size_t, int>, std::vector<TierOption>> options;
};

} // namespace

void neuroshard::improveTiers(const SearchContext &context,
                              std::span<const TieredTable> tables,
                              std::span<const Tier> tiers,
                              const std::function<bool()> &isOver,
                              ShardingPlan &plan) {
  TierImprover(context, tables, tiers, isOver, plan).run();
}
