//===- ChooseRoutes.cpp - Directly or by relay, table by table ------------===//
///
/// \file
/// Descent from two states, all tables that may go by relay and none, a table
/// at a time, those that send most first. What a table sends by relay is the
/// same whatever the others do, so that a step costs no more than to add its
/// bytes up and to ask for the exchanges.
//===----------------------------------------------------------------------===//

#include "ChooseRoutes.h"

#include "Cost/RelayLoads.h"
#include "Units/SearchOutcome.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Traffic.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <cstdio>

using namespace neuroshard;

namespace {

/// A relay must lower the cost by this share: what is nearer is not known.
constexpr double kRelayWorth = 2e-3;
constexpr int kPasses = 3;
/// Devices x costs that are asked for, and how many costs at least.
constexpr double kWork = 4e6;
constexpr double kMinCosts = 64;

/// The loads of a plan under one snapshot, and its tables' relays.
struct Period {
  double share = 1;
  std::vector<DeviceLoad> loads;
  std::vector<RelayLoad> relays;
  std::vector<TableRelay> tables; ///< by candidate.
};

class RouteChooser {
public:
  RouteChooser(const SearchContext &context, const ShardingPlan &plan)
      : context(context), plan(plan), shardsOfTable(tableCount()) {
    for (const Shard &shard : plan.shards)
      shardsOfTable[indexOf(shard)].push_back(&shard);
    const ShardingProblem &problem = context.problem;
    std::vector<std::vector<int>> features = featuresOfTables(problem);
    for (size_t table = 0; table < tableCount(); ++table)
      if (mayChoose(features, table))
        candidates.push_back(table);
    std::vector<double> shares = snapshotShares(problem);
    if (shares.empty())
      addPeriod(problem, features, 1);
    for (size_t i = 0; i < shares.size(); ++i)
      addPeriod(atSnapshot(problem, i), features, shares[i]);
    relayed.assign(candidates.size(), false);
    costsLeft = std::max(kMinCosts, kWork / context.deviceCount);
  }

  /// By table; none if no relay is worth it.
  std::vector<bool> run() {
    double direct = costMs(), best = direct;
    std::vector<bool> bestRelayed = relayed;
    for (bool all : {false, true}) {
      for (size_t i = 0; i < candidates.size(); ++i)
        set(i, all);
      double cost = descend(costMs());
      if (cost < best * (1 - kRelayWorth)) {
        best = cost;
        bestRelayed = relayed;
      }
    }
    directMs = direct;
    relayedMs = best;
    std::vector<bool> result(tableCount());
    for (size_t i = 0; i < candidates.size(); ++i)
      result[candidates[i]] = bestRelayed[i];
    return result;
  }

  double directMs = 0, relayedMs = 0;

private:
  size_t tableCount() const { return context.problem.tables.size(); }
  size_t indexOf(const Shard &shard) const {
    return static_cast<size_t>(context.tableIndex(shard.table));
  }

  bool mayChoose(const std::vector<std::vector<int>> &features,
                 size_t table) const {
    const std::vector<const Shard *> &shards = shardsOfTable[table];
    return !shards.empty() && !shards.front()->replicated() &&
           !context.rulesOf(static_cast<int>(table)).fixed &&
           std::ranges::any_of(features[table], [&](int feature) {
             return context.problem.features[static_cast<size_t>(feature)]
                        .pooling != Pooling::None;
           });
  }

  void addPeriod(const ShardingProblem &problem,
                 const std::vector<std::vector<int>> &features, double share) {
    Period period{share, planLoads(problem, plan, context.model), {}, {}};
    period.relays = relayLoads(problem, plan.shards, period.loads);
    period.relays.resize(period.loads.size());
    auto relayOf = [&](size_t table) {
      return TableRelay(problem, static_cast<int>(table), features[table],
                        shardsOfTable[table]);
    };
    if (periods.empty())
      std::ranges::stable_sort(candidates, std::greater(), [&](size_t table) {
        return relayOf(table).directBytes();
      });
    for (size_t table : candidates)
      period.tables.push_back(relayOf(table));
    periods.push_back(std::move(period));
  }

  void set(size_t candidate, bool byRelay) {
    if (relayed[candidate] == byRelay)
      return;
    relayed[candidate] = byRelay;
    for (Period &period : periods)
      period.tables[candidate].add(period.loads, period.relays,
                                   byRelay ? 1 : -1);
  }

  double costMs() {
    --costsLeft;
    double cost = 0;
    bool none = std::ranges::none_of(relayed, std::identity());
    for (const Period &period : periods)
      cost +=
          period.share * composeCost(context.problem.topology, period.loads,
                                     context.model, context.options.objective,
                                     none && !hasFixedRelays()
                                         ? std::span<const RelayLoad>()
                                         : period.relays)
                             .costMs;
    return cost;
  }

  /// Of tables with shards written by hand.
  bool hasFixedRelays() const {
    return std::ranges::any_of(plan.shards, [](const Shard &shard) {
      return shard.route != Route::Direct;
    });
  }

  double descend(double cost) {
    for (int pass = 0; pass < kPasses; ++pass) {
      bool better = false;
      for (size_t i = 0; i < candidates.size() && costsLeft > 0; ++i) {
        set(i, !relayed[i]);
        double other = costMs();
        // As cheap without a relay is better.
        bool isWorse = relayed[i] ? other >= cost : other > cost;
        if (isWorse) {
          set(i, !relayed[i]);
          continue;
        }
        better = better || other < cost;
        cost = other;
      }
      if (!better)
        break;
    }
    return cost;
  }

  const SearchContext &context;
  const ShardingPlan &plan;
  std::vector<std::vector<const Shard *>> shardsOfTable;
  std::vector<size_t> candidates; ///< tables.
  std::vector<Period> periods;
  std::vector<bool> relayed; ///< by candidate.
  double costsLeft = 0;
};

/// Writes what differs from what would happen anyway.
void writeRoutes(const SearchContext &context, const std::vector<bool> &relayed,
                 ShardingPlan &plan) {
  auto indexOf = [&](const Shard &shard) {
    return static_cast<size_t>(context.tableIndex(shard.table));
  };
  auto isFree = [&](const Shard &shard) {
    return !context.rulesOf(context.tableIndex(shard.table)).fixed;
  };
  for (Shard &shard : plan.shards)
    if (isFree(shard))
      shard.route = Route::Auto;
  std::vector<bool> byRule =
      relayedTables(exchangePlan(context.problem, plan.shards));
  for (Shard &shard : plan.shards) {
    bool byRelay = !relayed.empty() && relayed[indexOf(shard)];
    if (isFree(shard) && (byRelay || byRule[indexOf(shard)]))
      shard.route = byRelay ? Route::Relay : Route::Direct;
  }
}

} // namespace

std::optional<std::string>
neuroshard::chooseRoutes(const SearchContext &context, ShardingPlan &plan) {
  if (relayGroupSize(context.problem) == 0)
    return std::nullopt;
  RouteChooser chooser(context, plan);
  std::vector<bool> relayed = chooser.run();
  size_t count = static_cast<size_t>(std::ranges::count(relayed, true));
  writeRoutes(context, relayed, plan);
  if (count == 0)
    return std::nullopt;
  if (!verify(plan, context.problem).empty()) {
    writeRoutes(context, {}, plan);
    return "relays would lower the cost to " + formatMs(chooser.relayedMs) +
           ", but their buffers do not fit";
  }
  return "results of " + std::to_string(count) +
         (count == 1 ? " table travel" : " tables travel") +
         " between groups of devices by relay: " + formatMs(chooser.relayedMs) +
         ", " + formatMs(chooser.directMs) + " if all went directly";
}

double neuroshard::costWithRoutesMs(const SearchContext &context,
                                    const ShardingPlan &plan) {
  RouteChooser chooser(context, plan);
  chooser.run();
  return chooser.relayedMs;
}
