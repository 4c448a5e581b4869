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
#include <functional>

using namespace neuroshard;

namespace {

/// A relay must lower the cost by this share: what is nearer is not known.
constexpr double kRelayWorth = 2e-3;
constexpr int kPasses = 3;
/// Devices x costs that are asked for, and how many costs at least.
constexpr double kWork = 4e6;
constexpr double kMinCosts = 64;

/// The loads of a plan under one snapshot, and what goes by relay.
struct Period {
  double share = 1;
  std::vector<DeviceLoad> loads;
  std::vector<RelayLoad> relays;
};

/// A table that may go either way.
struct Candidate {
  size_t table;
  std::vector<TableRelay> relays; ///< in each period.
  bool relayed = false;
};

class RouteChooser {
public:
  RouteChooser(const SearchContext &context, const ShardingPlan &plan)
      : context(context),
        costsLeft(std::max(kMinCosts, kWork / context.deviceCount)) {
    std::vector<const ShardingProblem *> problems;
    for (const ShardingProblem &period : context.periods)
      problems.push_back(&period);
    if (problems.empty())
      problems.push_back(&context.problem);
    addCandidates(problems, plan);
    for (size_t i = 0; i < problems.size(); ++i)
      addPeriod(*problems[i], plan,
                context.periods.empty() ? 1 : context.shares[i]);
  }

  /// By table.
  std::vector<bool> run() {
    directMs = relayedMs = costMs();
    std::vector<bool> best(context.problem.tables.size());
    for (bool byRelay : {false, true}) {
      for (Candidate &candidate : candidates)
        set(candidate, byRelay);
      double cost = descend(costMs());
      if (cost >= relayedMs * (1 - kRelayWorth))
        continue;
      relayedMs = cost;
      for (const Candidate &candidate : candidates)
        best[candidate.table] = candidate.relayed;
    }
    return best;
  }

  double directMs = 0, relayedMs = 0;

private:
  void addCandidates(std::span<const ShardingProblem *const> problems,
                     const ShardingPlan &plan) {
    const ShardingProblem &problem = context.problem;
    std::vector<std::vector<const Shard *>> shards(problem.tables.size());
    for (const Shard &shard : plan.shards)
      shards[static_cast<size_t>(context.tableIndex(shard.table))].push_back(
          &shard);
    std::vector<std::vector<int>> features = featuresOfTables(problem);
    for (size_t table = 0; table < shards.size(); ++table) {
      if (context.rulesOf(static_cast<int>(table)).fixed)
        continue;
      Candidate candidate{table, {}};
      for (const ShardingProblem *period : problems)
        candidate.relays.emplace_back(*period, features[table], shards[table]);
      if (!candidate.relays.front().isEmpty())
        candidates.push_back(std::move(candidate));
    }
    std::ranges::stable_sort(
        candidates, std::greater(),
        [](const Candidate &c) { return c.relays.front().directBytes(); });
  }

  void addPeriod(const ShardingProblem &problem, const ShardingPlan &plan,
                 double share) {
    Period period{share, planLoads(problem, plan, context.model), {}};
    period.relays = relayLoads(problem, plan.shards, period.loads);
    hasFixedRelays = !period.relays.empty();
    period.relays.resize(period.loads.size());
    periods.push_back(std::move(period));
  }

  void set(Candidate &candidate, bool byRelay) {
    if (candidate.relayed == byRelay)
      return;
    candidate.relayed = byRelay;
    for (size_t i = 0; i < periods.size(); ++i)
      candidate.relays[i].add(periods[i].loads, periods[i].relays,
                              byRelay ? 1 : -1);
  }

  double costMs() {
    --costsLeft;
    bool allDirect = !hasFixedRelays &&
                     std::ranges::none_of(candidates, &Candidate::relayed);
    double cost = 0;
    for (const Period &period : periods) {
      std::span<const RelayLoad> relays = period.relays;
      cost += period.share *
              composeCost(context.problem.topology, period.loads, context.model,
                          context.options.objective,
                          allDirect ? std::span<const RelayLoad>() : relays)
                  .costMs;
    }
    return cost;
  }

  double descend(double cost) {
    for (int pass = 0; pass < kPasses; ++pass) {
      double before = cost;
      for (Candidate &candidate : candidates) {
        if (costsLeft <= 0)
          return cost;
        set(candidate, !candidate.relayed);
        double other = costMs();
        // As cheap without a relay is better.
        if (candidate.relayed ? other >= cost : other > cost)
          set(candidate, !candidate.relayed);
        else
          cost = other;
      }
      if (cost == before)
        break;
    }
    return cost;
  }

  const SearchContext &context;
  double costsLeft;
  std::vector<Candidate> candidates;
  std::vector<Period> periods;
  /// Of tables with shards written by hand.
  bool hasFixedRelays = false;
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
  std::vector<bool> pooled(context.problem.tables.size());
  for (const Feature &feature : context.problem.features)
    if (feature.pooling != Pooling::None)
      pooled[static_cast<size_t>(feature.table)] = true;
  for (Shard &shard : plan.shards) {
    size_t table = indexOf(shard);
    bool byRelay = relayed[table];
    if (isFree(shard) && pooled[table] && (byRelay || byRule[table]))
      shard.route = byRelay ? Route::Relay : Route::Direct;
  }
}

} // namespace

std::optional<std::string>
neuroshard::chooseRoutes(const SearchContext &context, ShardingPlan &plan) {
  if (relayGroupSize(context.problem) == 0 ||
      !verify(plan, context.problem).empty())
    return std::nullopt;
  RouteChooser chooser(context, plan);
  std::vector<bool> relayed = chooser.run();
  size_t count = static_cast<size_t>(std::ranges::count(relayed, true));
  writeRoutes(context, relayed, plan);
  if (count == 0)
    return std::nullopt;
  if (!verify(plan, context.problem).empty()) {
    writeRoutes(context, std::vector<bool>(relayed.size()), plan);
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
  std::vector<bool> relayed = chooser.run();
  if (std::ranges::count(relayed, true) == 0)
    return chooser.relayedMs;
  ShardingPlan routed = plan;
  writeRoutes(context, relayed, routed);
  return verify(routed, context.problem).empty() ? chooser.relayedMs
                                                 : chooser.directMs;
}
