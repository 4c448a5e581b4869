//===- RoutesTest.cpp - Directly or by relay ------------------------------===//
//
// Compares the routes that a search chooses with all others.
//
//===----------------------------------------------------------------------===//

#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

constexpr int kTables = 6;

/// Six tables on two nodes of four.
ShardingProblem randomTables(unsigned seed, const std::string &topology) {
  std::mt19937 random(seed);
  auto below = [&](uint32_t limit) { return random() % limit; };
  ShardingProblem problem;
  problem.batch.globalSize = 8192;
  problem.topology = *parseTopology(topology);
  for (int i = 0; i < kTables; ++i)
    addTable(problem,
             makeTable(numbered("t", i), 10'000 << below(7), 64 << below(3)),
             1 << below(3));
  return problem;
}

SearchOptions optionsOf(Algorithm algorithm) {
  SearchOptions options;
  options.algorithm = algorithm;
  options.evaluationBudget = 1000;
  options.threads = 1;
  return options;
}

double costOf(const ShardingProblem &problem, const ShardingPlan &plan,
              const CostModel &model) {
  return evaluate(problem, plan, model, {}).costMs;
}

/// The plan with the tables of these bits by relay and the others directly.
ShardingPlan withRoutes(const ShardingProblem &problem, ShardingPlan plan,
                        unsigned bits) {
  for (Shard &shard : plan.shards)
    shard.route = bits >> problem.tableIndex(shard.table) & 1 ? Route::Relay
                                                              : Route::Direct;
  return plan;
}

TEST(RoutesTest, AreNearTheBest) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  int optimal = 0, cheaper = 0;
  constexpr unsigned kProblems = 24;
  for (unsigned seed = 0; seed < kProblems; ++seed) {
    ShardingProblem problem = randomTables(seed, "2x4xA100-40GB");
    Algorithm algorithm = seed % 2 ? Algorithm::Default : Algorithm::Size;
    auto result = search(problem, *model, optionsOf(algorithm));
    ASSERT_TRUE(result) << result.error().str();
    EXPECT_TRUE(verify(result->plan, problem).empty());
    double cost = result->breakdown.costMs;
    EXPECT_EQ(cost, costOf(problem, result->plan, *model));
    double direct =
        costOf(problem, withRoutes(problem, result->plan, 0), *model);
    double best = direct;
    for (unsigned bits = 1; bits < 1U << kTables; ++bits)
      best = std::min(
          best,
          costOf(problem, withRoutes(problem, result->plan, bits), *model));
    EXPECT_LE(cost, direct);
    EXPECT_LE(cost, best * 1.02) << seed;
    optimal += cost <= best * (1 + 2e-3);
    cheaper += cost < direct * 0.99;
  }
  EXPECT_GE(optimal, kProblems * 3 / 4);
  EXPECT_GE(cheaper, kProblems / 4);
}

TEST(RoutesTest, NoneWithoutSeveralDevicesInSeveralGroups) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  for (const char *topology : {"8xA100-40GB", "8x1xA100-40GB"}) {
    ShardingProblem problem = randomTables(1, topology);
    auto result = search(problem, *model, optionsOf(Algorithm::Default));
    ASSERT_TRUE(result) << result.error().str();
    for (const Shard &shard : result->plan.shards)
      EXPECT_EQ(shard.route, Route::Auto);
  }
}

TEST(RoutesTest, HandWrittenOnesStay) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  for (Route route : {Route::Direct, Route::Relay}) {
    ShardingProblem problem = randomTables(2, "2x4xA100-40GB");
    const Table &table = problem.tables[0];
    Shard fixed = makeShard("hand", "t0", 0, table.rows / 2, 0, table.dim, {0});
    fixed.route = route;
    problem.constraints.fixedShards = {fixed};
    auto result = search(problem, *model, optionsOf(Algorithm::Default));
    ASSERT_TRUE(result) << result.error().str();
    int pieces = 0;
    for (const Shard &shard : result->plan.shards)
      if (shard.table == "t0") {
        EXPECT_EQ(shard.route, route);
        ++pieces;
      }
    EXPECT_GT(pieces, 1);
  }
}

TEST(RoutesTest, ATableHasOne) {
  ShardingProblem problem = twoTables("2x4xCPU@1GiB");
  Shard first = makeShard("a_0", "a", 0, 500, 0, 16, {0});
  first.route = Route::Relay;
  ShardingPlan plan =
      makePlan(problem, {first, makeShard("a_1", "a", 500, 1000, 0, 16, {1}),
                         makeShard("b", "b", 0, 500, 0, 8, {2})});
  Diagnostics errors = verify(plan, problem);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].str(),
            "table 'a': its results travel one way: shard 'a_0' has route "
            "relay, shard 'a_1' auto");
  problem.constraints.fixedShards = {plan.shards[0], plan.shards[1]};
  Diagnostics given = check(problem);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].str(), errors[0].str());
}

TEST(RoutesTest, RelaysNeedPooledResultsAndTargetNative) {
  ShardingProblem problem = twoTables("2x4xCPU@1GiB");
  Shard relayed = makeShard("a", "a", 0, 1000, 0, 16, {0});
  relayed.route = Route::Relay;
  ShardingPlan plan =
      makePlan(problem, {relayed, makeShard("b", "b", 0, 500, 0, 8, {2})});
  EXPECT_TRUE(verify(plan, problem).empty());
  auto errorOf = [&](const ShardingProblem &changed) {
    Diagnostics errors = verify(plan, changed);
    return errors.empty() ? "" : errors[0].str();
  };
  ShardingProblem torchrec = problem;
  torchrec.target = Target::TorchRec19;
  EXPECT_EQ(errorOf(torchrec),
            "table 'a': target torchrec-1.9 has no relays; expected route auto "
            "or direct, got: relay of shard 'a'");
  for (Feature &feature : problem.features)
    feature.pooling = Pooling::None;
  EXPECT_EQ(errorOf(problem),
            "table 'a': results without pooling never go by relay; expected "
            "route auto or direct, got: relay of shard 'a'");
}

TEST(RoutesTest, OfResultsWithoutPoolingNothingIsSaid) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  ShardingProblem problem = randomTables(3, "2x4xA100-40GB");
  for (Feature &feature : problem.features)
    feature.pooling = Pooling::None;
  for (size_t table = 0; table < problem.tables.size(); ++table) {
    TableConstraint &rule = problem.constraints.tables.emplace_back();
    rule.table = static_cast<int>(table);
    rule.allowedKinds = {ShardingKind::RowWise};
  }
  auto result = search(problem, *model, optionsOf(Algorithm::Default));
  ASSERT_TRUE(result) << result.error().str();
  for (const Shard &shard : result->plan.shards)
    EXPECT_EQ(shard.route, Route::Auto);
}

} // namespace
