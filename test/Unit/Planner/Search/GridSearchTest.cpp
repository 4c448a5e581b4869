//===- GridSearchTest.cpp - Even grids of tables over groups --------------===//

#include "Groups/GridSearch.h"
#include "Groups/GridBoard.h"
#include "Groups/GridPrices.h"
#include "Searches.h"
#include "neuroshard/CostModel/Roofline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

constexpr int kLargest = 20;

/// A plan with tables of at most so many rows on all devices, and no others.
ShardingPlan replicasOf(const ShardingProblem &problem, int64_t rows) {
  ShardingPlan plan;
  plan.deviceCount = problem.topology.deviceCount();
  for (const Table &table : problem.tables) {
    if (table.rows > rows)
      continue;
    Shard shard;
    shard.name = shard.table = table.name;
    shard.rowEnd = table.rows;
    shard.colEnd = table.dim;
    shard.devices.resize(static_cast<size_t>(plan.deviceCount));
    std::iota(shard.devices.begin(), shard.devices.end(), 0);
    plan.shards.push_back(std::move(shard));
  }
  return plan;
}

void nameShards(ShardingPlan &plan) {
  for (size_t i = 0; i < plan.shards.size(); ++i)
    plan.shards[i].name = std::to_string(i);
}

// Where each group has one part of a table, a step takes what a part does, but
// that pieces of an exchange are messages of their own.
TEST(GridPricesTest, AreThoseOfAPlanWithSuchAPartOnEachGroup) {
  ShardingProblem problem = dlrm("4x4xH200");
  std::unique_ptr<CostModel> model = makeRooflineModel();
  SearchOptions options;
  SearchContext context(problem, *model, options, RowWidths::Free);
  ShardingPlan none = replicasOf(problem, 0);
  GridPrices prices(context, 4, none);
  for (Grid grid : {Grid{4, 1, 4, 1}, Grid{2, 2, 4, 1}, Grid{2, 2, 2, 2},
                    Grid{1, 4, 1, 4}}) {
    ASSERT_TRUE(prices.isPossible(kLargest, grid));
    ShardingPlan plan = none;
    for (int part = 0; part < 4; ++part)
      for (Shard &shard : prices.shardsOf(kLargest, grid, part, part))
        plan.shards.push_back(std::move(shard));
    nameShards(plan);
    CostBreakdown exact = evaluate(problem, plan, *model, {});
    StageMs part = prices.priceOf(kLargest, grid, true).ms;
    const StageMs &empty = prices.emptyMs();
    auto stage = [&](size_t k) { return part[k] + empty[k]; };
    EXPECT_NEAR(stage(0) + stage(1), exact.inputMs, 1e-9);
    EXPECT_NEAR(stage(2), exact.maxForwardMs, 1e-9);
    double all = 0;
    for (size_t k = 0; k < kGridStages; ++k)
      all += stage(k);
    EXPECT_NEAR(all, exact.costMs, 0.15 * exact.costMs);
  }
}

TEST(GridPricesTest, KnowWhichGridsThereAre) {
  ShardingProblem problem = dlrm("4x4xH200");
  problem.constraints.tables.push_back(
      {.table = kLargest, .allowedKinds = {ShardingKind::RowWise}});
  std::unique_ptr<CostModel> model = makeRooflineModel();
  SearchOptions options;
  SearchContext context(problem, *model, options, RowWidths::Free);
  GridPrices prices(context, 4, replicasOf(problem, 0));
  EXPECT_TRUE(prices.isPossible(kLargest, {4, 1, 4, 1}));
  EXPECT_FALSE(prices.isPossible(kLargest, {2, 2, 4, 1})); // by its rules
  EXPECT_FALSE(prices.isPossible(kLargest, {5, 1, 4, 1})); // four groups
  EXPECT_TRUE(prices.isPossible(19, {1, 4, 1, 4}));
  EXPECT_TRUE(prices.isPossible(19, {4, 1, 4, 1}));
  EXPECT_FALSE(prices.isPossible(5, {1, 1, 4, 1})); // 3 rows
}

/// The least sum over the stages of the longest group, over all states.
double leastByForce(const std::vector<GridTable> &tables, int groupCount) {
  std::vector<StageMs> groups(static_cast<size_t>(groupCount));
  double least = 1e300;
  std::function<void(size_t, size_t, int)> place = [&](size_t table,
                                                       size_t grid, int part) {
    if (table == tables.size()) {
      double sum = 0;
      for (size_t k = 0; k < kGridStages; ++k) {
        double longest = 0;
        for (const StageMs &group : groups)
          longest = std::max(longest, group[k]);
        sum += longest;
      }
      least = std::min(least, sum);
      return;
    }
    const PricedGrid &one = tables[table].grids[grid];
    bool isLast = part + 1 == one.grid.parts();
    for (StageMs &group : groups) {
      StageMs before = group;
      for (size_t k = 0; k < kGridStages; ++k)
        group[k] += one.priceOf(part).ms[k];
      if (!isLast)
        place(table, grid, part + 1);
      else if (table + 1 == tables.size())
        place(table + 1, 0, 0);
      else
        for (size_t next = 0; next < tables[table + 1].grids.size(); ++next)
          place(table + 1, next, 0);
      group = before;
    }
  };
  for (size_t first = 0; first < tables.front().grids.size(); ++first)
    place(0, first, 0);
  return least;
}

// Random search beside all states of small problems.
TEST(GridBoardTest, FindsTheBestStateOfSmallProblems) {
  constexpr int kGroups = 3;
  MersenneTwister draw(7);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<GridTable> tables(3);
    for (GridTable &table : tables)
      for (int rows : {1, 2}) {
        PricedGrid &one =
            table.grids.emplace_back(PricedGrid{{rows, 1, 4, 1}, {}, {}, {}});
        one.isWide = {true};
        for (double &ms : one.wide.ms)
          ms = draw.uniform() / rows + 0.05;
        one.wide.bytes = 1;
      }
    double best = leastByForce(tables, kGroups);
    double least = 1e300;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      GridBoard board(tables, kGroups, 100);
      ASSERT_TRUE(board.placeAll());
      SplitMix64 random(seed);
      board.anneal(3000, 0.1, random, [] { return false; });
      least = std::min(least, board.energy());
    }
    EXPECT_GE(least, best * (1 - 1e-9));
    EXPECT_LE(least, best * 1.02) << repeat; // a maximum is smoothed
  }
}

TEST(GridBoardTest, KeepsToTheMemoryOfGroups) {
  std::vector<GridTable> tables(4);
  for (GridTable &table : tables) {
    PricedGrid &one =
        table.grids.emplace_back(PricedGrid{{1, 1, 4, 1}, {}, {}, {true}});
    one.wide.ms.fill(1);
    one.wide.bytes = 10;
  }
  GridBoard small(tables, 3, 10);
  EXPECT_FALSE(small.placeAll());
  GridBoard board(tables, 2, 20);
  ASSERT_TRUE(board.placeAll());
  SplitMix64 random(1);
  board.anneal(500, 10, random, [] { return false; });
  std::vector<int> parts(2);
  for (const std::vector<int> &groups : board.state().groups)
    ++parts[static_cast<size_t>(groups.front())];
  EXPECT_EQ(parts, (std::vector<int>{2, 2}));
}

TEST(GridSearchTest, CoversTablesWithoutCopies) {
  ShardingProblem problem = dlrm("4x4xH200");
  std::unique_ptr<CostModel> model = makeRooflineModel();
  SearchOptions options;
  options.threads = 2;
  SearchContext context(problem, *model, options, RowWidths::Free);
  ShardingPlan replicas = replicasOf(problem, 50'000);
  int64_t evaluations = 0;
  std::optional<ShardingPlan> plan =
      searchGrids(context, replicas, 5, evaluations);
  ASSERT_TRUE(plan);
  EXPECT_GT(evaluations, 10);
  nameShards(*plan);
  for (const Diagnostic &broken : verify(*plan, problem))
    ADD_FAILURE() << broken.where << ": " << broken.message;
  // Beside all tables over all groups alike.
  GridPrices prices(context, 4, replicas);
  ShardingPlan even = replicas;
  for (size_t table = 0; table < problem.tables.size(); ++table)
    if (problem.tables[table].rows > 50'000)
      for (int part = 0; part < 4; ++part)
        for (Shard &shard :
             prices.shardsOf(static_cast<int>(table), {2, 2, 4, 1}, part, part))
          even.shards.push_back(std::move(shard));
  nameShards(even);
  EXPECT_LT(evaluate(problem, *plan, *model, {}).costMs,
            evaluate(problem, even, *model, {}).costMs);
  problem.constraints.pins.push_back({kLargest, {3}});
  SearchContext pinned(problem, *model, options, RowWidths::Free);
  EXPECT_FALSE(searchGrids(pinned, replicas, 5, evaluations));
}

} // namespace
