//===- PlanCost.cpp - Cost of a plan without a search state ---------------===//

#include "PlanCost.h"

#include "Cost/RelayLoads.h"
#include "neuroshard/Planner/Objective.h"

#include <set>

using namespace neuroshard;

static double costIn(const ShardingProblem &problem,
                     const SearchContext &context, const ShardingPlan &plan,
                     std::vector<double> &computeMs) {
  std::vector<DeviceLoad> loads = planLoads(problem, plan, context.model);
  std::vector<RelayLoad> relays = relayLoads(problem, plan.shards, loads);
  computeMs.clear();
  for (const DeviceLoad &load : loads)
    computeMs.push_back(load.compute.total());
  return composeCost(problem.topology, loads, context.model,
                     context.options.objective, relays)
      .costMs;
}

double neuroshard::planCostMs(const SearchContext &context,
                              const ShardingPlan &plan,
                              std::vector<double> &computeMs) {
  if (context.periods.empty())
    return costIn(context.problem, context, plan, computeMs);
  double cost = 0;
  std::vector<double> ofPeriod;
  computeMs.assign(static_cast<size_t>(context.deviceCount), 0);
  for (size_t i = 0; i < context.periods.size(); ++i) {
    cost +=
        context.shares[i] * costIn(context.periods[i], context, plan, ofPeriod);
    for (size_t d = 0; d < ofPeriod.size(); ++d)
      computeMs[d] += context.shares[i] * ofPeriod[d];
  }
  return cost;
}

double neuroshard::planCostMs(const SearchContext &context,
                              const ShardingPlan &plan) {
  std::vector<double> computeMs;
  return planCostMs(context, plan, computeMs);
}

int neuroshard::countCopiedTables(const SearchContext &context,
                                  const ShardingPlan &plan) {
  std::set<int> tables;
  for (const Shard &shard : plan.shards) {
    int table = context.tableIndex(shard.table);
    if (isCopied(context.table(table), shard, context.deviceCount))
      tables.insert(table);
  }
  return static_cast<int>(tables.size());
}
