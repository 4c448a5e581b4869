//===- ExplainTiers.cpp - Tables in lower tiers, in words -----------------===//

#include "ExplainTiers.h"

#include "ChooseTiers.h"
#include "neuroshard/Planner/CacheHits.h"
#include "neuroshard/Planner/Memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>

using namespace neuroshard;

namespace {

/// Tables with a sentence of their own.
constexpr size_t kMaxTables = 16;
constexpr double kGiB = 1024.0 * 1024 * 1024;

/// A table's shards in one tier.
struct TableFetches {
  double share = 0; ///< of the table.
  double cachedShare = 0;
  CacheUse use; ///< of all shards.
  FetchLoad load;

  double bytes() const {
    return load.hostReadBytes + load.hostWriteBytes + load.diskBytes;
  }
};

using FetchesByTable = std::map<std::pair<int, Tier>, TableFetches>;

FetchesByTable fetchesOf(const ShardingProblem &problem,
                         const ShardingPlan &plan) {
  FetchesByTable all;
  PlanWork work = describePlan(problem, plan);
  for (size_t i = 0; i < plan.shards.size(); ++i) {
    const Shard &shard = plan.shards[i];
    const ShardWork &one = work.works[i];
    if (!hasRowCache(problem.target, shard.tier))
      continue;
    TableFetches &table = all[{one.table, shard.tier}];
    double share =
        elementShare(problem.tables[static_cast<size_t>(one.table)], shard);
    table.share += share;
    table.cachedShare +=
        share * std::min(1.0, static_cast<double>(shard.cache.rows) /
                                  static_cast<double>(shard.rows()));
    table.use.rows += one.cacheUse.rows;
    table.use.hits += one.cacheUse.hits;
    addFetches(table.load, one.fetch, 1);
  }
  return all;
}

const char *placeOf(Tier tier) {
  return tier == Tier::Dram ? "in host memory" : "on disk";
}

/// "4.5 MB", "9.8 GB".
std::string inBytes(double bytes) {
  std::ostringstream text;
  text.precision(3);
  bool isLarge = bytes >= 1e9;
  text << bytes / (isLarge ? 1e9 : 1e6) << (isLarge ? " GB" : " MB");
  return text.str();
}

/// "1.5 ms", "54 s".
std::string inTime(double ms) {
  std::ostringstream text;
  text.precision(3);
  bool isLong = ms >= 1000;
  text << ms / (isLong ? 1000 : 1) << (isLong ? " s" : " ms");
  return text.str();
}

std::string sentence(const Table &table, Tier tier, const TableFetches &one) {
  std::ostringstream text;
  text.precision(3);
  text << "table '" << table.name << "' is " << placeOf(tier);
  if (one.share < 0.999)
    text << " with " << 100 * one.share << " % of its elements";
  text << ", with a cache of " << 100 * one.cachedShare / one.share
       << " % of its rows: a batch finds " << 100 * one.use.hitRate()
       << " % of the rows that it uses, and moves " << inBytes(one.bytes())
       << " "
       << (tier == Tier::Dram ? "between host and devices" : "of disk blocks");
  return text.str();
}

std::string summary(size_t count, const TableFetches &rest) {
  std::ostringstream text;
  text.precision(3);
  text << count << (count == 1 ? " more table is" : " more tables are")
       << " below device memory; a batch moves " << inBytes(rest.bytes())
       << " of theirs";
  return text.str();
}

/// What the chooser of tiers would save with a GiB more on each device.
std::string moreMemory(const ShardingProblem &problem,
                       std::span<const Tier> tiers) {
  std::vector<TieredTable> tables = tierOptions(problem, tiers);
  TierBytes room = roomForTables(problem, tiers);
  std::optional<TierChoice> now = chooseTiers(tables, room);
  room.device += kGiB * static_cast<double>(problem.topology.devices.size());
  std::optional<TierChoice> then = chooseTiers(tables, room);
  if (!now || !then || then->ms >= now->ms)
    return "";
  std::ostringstream text;
  text.precision(3);
  text << "; with 1 GiB more on each device, fetches would take "
       << 100 * (1 - then->ms / now->ms) << " % less time";
  return text.str();
}

std::string bytesText(double bytes) {
  return formatBytes(static_cast<int64_t>(std::llround(bytes)));
}

} // namespace

std::vector<std::string> neuroshard::explainTiers(const ShardingProblem &given,
                                                  const ShardingPlan &plan,
                                                  const CostBreakdown &cost) {
  const ShardingProblem problem = summarized(given);
  FetchesByTable all = fetchesOf(problem, plan);
  if (all.empty())
    return {};
  std::vector<const FetchesByTable::value_type *> order;
  std::vector<Tier> tiers;
  for (const auto &entry : all) {
    order.push_back(&entry);
    if (std::ranges::find(tiers, entry.first.second) == tiers.end())
      tiers.push_back(entry.first.second);
  }
  std::ranges::sort(tiers);
  std::ranges::stable_sort(order, std::greater(), [](const auto *entry) {
    return entry->second.bytes();
  });
  std::vector<std::string> sentences;
  for (size_t i = 0; i < std::min(kMaxTables, order.size()); ++i) {
    const auto &[place, fetches] = *order[i];
    sentences.push_back(
        sentence(problem.tables[static_cast<size_t>(place.first)], place.second,
                 fetches));
  }
  TableFetches rest;
  for (size_t i = kMaxTables; i < order.size(); ++i)
    addFetches(rest.load, order[i]->second.load, 1);
  if (order.size() > kMaxTables)
    sentences.push_back(summary(order.size() - kMaxTables, rest));
  double longest = 0;
  for (const DeviceCost &device : cost.devices)
    longest = std::max(longest, device.fetchMs);
  std::ostringstream text;
  text.precision(3);
  text << "fetching rows takes up to " << inTime(longest)
       << " of a step, which waits for " << inTime(cost.fetchMs) << " of it"
       << moreMemory(problem, tiers);
  sentences.push_back(text.str());
  return sentences;
}

std::string neuroshard::whyNoTiers(std::span<const TieredTable> tables,
                                   const TierBytes &room,
                                   const std::string &failure) {
  TierBytes least = leastBytes(tables);
  std::string text = "with tables in lower tiers there is no plan either: ";
  if (least.device > room.device)
    return text + "they need at least " + bytesText(least.device) +
           " of device memory, for caches of what batches use and for what "
           "stays there; for tables there are " +
           bytesText(room.device);
  if (!failure.empty())
    return text + failure;
  double below = 0;
  for (const TieredTable &table : tables)
    below += std::max(table.options.back().bytes.host,
                      table.options.back().bytes.disk);
  text += "as records all tables take " + bytesText(below) + "; there are " +
          bytesText(room.device) + " of device memory for tables";
  bool hasHosts = std::ranges::any_of(tables, [](const TieredTable &table) {
    return std::ranges::any_of(table.options, [](const TierOption &option) {
      return option.tier == Tier::Dram;
    });
  });
  if (hasHosts)
    text += ", " + bytesText(room.host) + " of host memory";
  bool hasDisks = std::ranges::any_of(tables, [](const TieredTable &table) {
    return table.options.back().bytes.disk > 0;
  });
  if (hasDisks && std::isfinite(room.disk))
    text += ", " + bytesText(room.disk) + " of disk";
  return text;
}

void neuroshard::adviseTiers(const ShardingProblem &given,
                             PlanningError &error) {
  const ShardingProblem problem = summarized(given);
  std::vector<Tier> tiers =
      usableTiers(problem, std::array{Tier::Dram, Tier::Ssd});
  if (tiers.empty())
    return;
  std::vector<TieredTable> tables = tierOptions(problem, tiers);
  auto isEnough = [&](const TierBytes &room) {
    return chooseTiers(tables, room).has_value();
  };
  if (std::ranges::none_of(roomsForTables(problem, tiers), isEnough))
    return;
  std::string names = "hbm";
  for (Tier tier : tiers)
    names.append(",").append(toString(tier));
  error.advice +=
      "; or let tables lie below device memory: tiers=\"" + names + "\"";
}
