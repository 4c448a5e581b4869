//===- OtherPlacementTest.cpp - Prices are those of the other plans -------===//

#include "neuroshard/Planner/OtherPlacement.h"
#include "Searches.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Support/Random.h"

#include <gmock/gmock.h>

#include <limits>
#include <set>

using namespace neuroshard;
using namespace neuroshard::test;
using ::testing::HasSubstr;

namespace {

/// The plan with these tables whole on a device.
ShardingPlan withWhole(const ShardingProblem &problem, ShardingPlan plan,
                       const std::set<int> &tables, int device) {
  for (int index : tables) {
    const Table &table = problem.tables[static_cast<size_t>(index)];
    std::erase_if(plan.shards, [&](const Shard &shard) {
      return shard.table == table.name;
    });
    plan.shards.push_back(makeShard(table.name + "_whole", table.name, 0,
                                    table.rows, 0, table.dim, {device}));
  }
  return plan;
}

/// The least cost of a valid plan with the tables whole on a device where they
/// are not yet.
double leastMs(const ShardingProblem &problem, const ShardingPlan &plan,
               const std::set<int> &tables, const CostModel &model,
               const ObjectiveOptions &objective) {
  double least = std::numeric_limits<double>::infinity();
  for (int device = 0; device < plan.deviceCount; ++device) {
    ShardingPlan other = withWhole(problem, plan, tables, device);
    auto isThere = [&](const Shard &shard) {
      const Table &table = problem.tables[static_cast<size_t>(*tables.begin())];
      return shard.table == table.name && shard.rows() == table.rows &&
             shard.width() == table.dim &&
             shard.devices == std::vector<int>{device};
    };
    if (std::ranges::none_of(plan.shards, isThere) &&
        verify(other, problem).empty())
      least =
          std::min(least, evaluate(problem, other, model, objective).costMs);
  }
  return least;
}

ShardingProblem randomProblem(MersenneTwister &dice) {
  ShardingProblem problem;
  problem.topology = *parseTopology(
      dice.oneOf({"1xCPU", "2xCPU", "2x2xCPU", "3+2xCPU", "2x4xH200"}));
  problem.constraints.reserves = {0, 0, 0};
  problem.batch.globalSize = dice.between(64, 4096);
  problem.target = dice.chance(30) ? Target::TorchRec19 : Target::Native;
  problem.optimizerSemantics =
      dice.oneOf({OptimizerSemantics::Exact, OptimizerSemantics::PerShard});
  int tables = static_cast<int>(dice.between(1, 6));
  double stored = 0;
  for (int i = 0; i < tables; ++i) {
    Table table = makeTable(
        numbered("t", i), dice.between(2, 20000), 4 * dice.between(1, 16),
        dice.oneOf({OptimizerKind::SGD, OptimizerKind::RowWiseAdagrad}));
    stored += static_cast<double>(table.rows * table.dim * 4);
    addTable(problem, table, static_cast<double>(dice.between(1, 40)));
  }
  for (Device &device : problem.topology.devices)
    device.memoryBytes =
        static_cast<int64_t>(stored * static_cast<double>(dice.between(5, 40)) /
                             10 / problem.topology.deviceCount()) +
        50000000;
  Constraints &constraints = problem.constraints;
  int table = static_cast<int>(dice.between(0, tables - 1));
  if (dice.chance(20))
    constraints.forbids.push_back({table, {0}});
  if (dice.chance(20))
    constraints.tables.push_back(
        {table, {ShardingKind::RowWise, ShardingKind::TableWise}, 1});
  if (dice.chance(30) && tables > 1)
    (dice.chance(50) ? constraints.coLocate : constraints.separate)
        .push_back({0, 1});
  if (dice.chance(40))
    problem.snapshots = {
        {"day", 3, {}, {}},
        {"night",
         1,
         {{table, static_cast<double>(dice.between(1, 90)), 0, 1}},
         {}}};
  return problem;
}

TEST(OtherPlacementTest, PricesAreThoseOfTheOtherPlans) {
  int priced = 0, refused = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    MersenneTwister dice(seed);
    ShardingProblem problem = randomProblem(dice);
    bool published = dice.chance(30);
    auto model = published ? makeReferenceModel() : makeRooflineModel();
    SearchOptions options;
    options.evaluationBudget = 200;
    options.threads = 1;
    options.algorithm =
        dice.oneOf({Algorithm::Default, Algorithm::Threshold, Algorithm::Size});
    options.objective.kind =
        published ? ObjectiveKind::Published : ObjectiveKind::Step;
    auto found = search(problem, *model, options);
    if (!found)
      continue;
    const ShardingPlan &plan = found->plan;
    OtherPlacements others(problem, plan, *model, options.objective);
    double now = evaluate(problem, plan, *model, options.objective).costMs;
    EXPECT_NEAR(others.costMs(), now, 1e-9 * now) << seed;
    for (size_t i = 0; i < problem.tables.size(); ++i) {
      int table = static_cast<int>(i);
      std::set<int> together = {table};
      if (table < 2 && !problem.constraints.coLocate.empty())
        together = {0, 1};
      OtherPlacement other = others.whole(table);
      double least =
          leastMs(problem, plan, together, *model, options.objective);
      ASSERT_EQ(other.costMs.has_value(), std::isfinite(least))
          << seed << ", " << i << ": " << other.text;
      EXPECT_EQ(other.costMs.has_value(), other.device >= 0) << seed;
      if (!other.costMs) {
        ++refused;
        continue;
      }
      ++priced;
      ShardingPlan moved = withWhole(problem, plan, together, other.device);
      EXPECT_EQ(text(verify(moved, problem)), "") << seed;
      EXPECT_NEAR(*other.costMs,
                  evaluate(problem, moved, *model, options.objective).costMs,
                  1e-9 * now)
          << seed << ", " << i << ": " << other.text;
      // With snapshots their summary chooses the device.
      if (problem.snapshots.empty()) {
        EXPECT_NEAR(*other.costMs, least, 1e-9 * now) << seed << ", " << i;
      }
    }
  }
  EXPECT_GT(priced, 200);
  EXPECT_GT(refused, 10);
}

/// No search makes this plan: some rows are whole, others cut by columns, and
/// the tables are not where any form puts them.
TEST(OtherPlacementTest, AnyValidPlanIsPriced) {
  ShardingProblem problem = twoTables("3xCPU@1GiB");
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  ShardingPlan plan =
      makePlan(problem, {makeShard("x", "a", 0, 700, 0, 16, {2}),
                         makeShard("y", "a", 700, 1000, 0, 4, {2}),
                         makeShard("z", "a", 700, 1000, 4, 16, {0}),
                         makeShard("b", "b", 0, 500, 0, 8, {0, 1, 2})});
  ASSERT_EQ(text(verify(plan, problem)), "");
  auto model = makeRooflineModel();
  OtherPlacements others(problem, plan, *model, {});
  EXPECT_DOUBLE_EQ(others.costMs(), evaluate(problem, plan, *model, {}).costMs);
  for (int table : {0, 1}) {
    OtherPlacement other = others.whole(table);
    ASSERT_TRUE(other.costMs) << other.text;
    EXPECT_NEAR(*other.costMs, leastMs(problem, plan, {table}, *model, {}),
                1e-12);
    EXPECT_THAT(other.text, HasSubstr("whole, a step would take "));
  }
}

/// Copies that drift take memory of all their devices.
TEST(OtherPlacementTest, CopiesThatDriftOnAllDevicesAreThere) {
  ShardingProblem problem = twoTables("2xCPU@1GiB");
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.constraints.reserves = {0, 0, 0};
  ShardingPlan plan =
      makePlan(problem, {makeShard("a", "a", 0, 1000, 0, 16, {0}),
                         makeShard("b", "b", 0, 500, 0, 8, {0, 1})});
  plan.shards[1].syncEvery = 10;
  problem.topology.devices[0].memoryBytes = 85000;
  problem.topology.devices[1].memoryBytes = 70000; // 16,000 of them for b
  ASSERT_EQ(text(verify(plan, problem)), "");
  auto model = makeRooflineModel();
  EXPECT_EQ(OtherPlacements(problem, plan, *model, {}).whole(0).text,
            "whole on another device, it needs 62.5 KiB, and no device has "
            "more than 52.7 KiB left for it");
}

TEST(OtherPlacementTest, WhatKeepsATableIsNamed) {
  ShardingProblem problem = twoTables("1xCPU@1GiB");
  ShardingPlan plan =
      makePlan(problem, {makeShard("a", "a", 0, 1000, 0, 16, {0}),
                         makeShard("b", "b", 0, 500, 0, 8, {0})});
  auto model = makeRooflineModel();
  EXPECT_EQ(OtherPlacements(problem, plan, *model, {}).whole(0).text,
            "there is one device");
  problem.topology = *parseTopology("2xCPU@1GiB");
  plan.deviceCount = 2;
  problem.constraints.pins = {{0, {0}}};
  OtherPlacements pinned(problem, plan, *model, {});
  EXPECT_EQ(pinned.whole(0).text, "whole on another device, the rules for the "
                                  "table allow no such device");
  EXPECT_THAT(pinned.whole(1).text, HasSubstr("whole on another device, a "));
  problem.topology.devices[1].memoryBytes = 0;
  problem.constraints.pins.clear();
  problem.memoryModel = MemoryModel::WeightsOnly;
  EXPECT_EQ(OtherPlacements(problem, plan, *model, {}).whole(0).text,
            "whole on another device, it needs 62.5 KiB, and no device has "
            "more than 0 B left for it");
  problem.constraints.fixedShards = {plan.shards.front()};
  EXPECT_EQ(OtherPlacements(problem, plan, *model, {}).whole(0).text,
            "its shards are written by hand");
}

} // namespace
