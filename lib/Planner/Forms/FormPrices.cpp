//===- FormPrices.cpp - Prices of other forms of tables -------------------===//

#include "FormPrices.h"

#include "Units/PlanCost.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <limits>

using namespace neuroshard;

FormPrices::FormPrices(const SearchContext &context, const ShardingPlan &plan,
                       double work, double fewest)
    : context(context), original(plan), tables(context.problem.tables.size()),
      costsLeft(std::max(
          fewest, work / static_cast<double>(
                             plan.shards.size() +
                             static_cast<size_t>(context.deviceCount)))) {
  for (const Shard &shard : plan.shards)
    tables[static_cast<size_t>(context.tableIndex(shard.table))].push_back(
        shard);
}

ShardingPlan FormPrices::planOf(const std::vector<TableShards> &of) const {
  ShardingPlan plan = original;
  plan.shards.clear();
  for (const TableShards &shards : of)
    plan.shards.insert(plan.shards.end(), shards.begin(), shards.end());
  return plan;
}

double FormPrices::costMs(const std::vector<TableShards> &of,
                          std::vector<double> &computeMs) {
  --costsLeft;
  ShardingPlan plan = planOf(of);
  if (verify(plan, context.problem).empty())
    return planCostMs(context, plan, computeMs);
  computeMs.resize(static_cast<size_t>(context.deviceCount));
  return std::numeric_limits<double>::infinity();
}
