//===- DriftTest.cpp - Plans for several periods, and ends of searches ----===//

#include "InitialUnits/InitialUnits.h"
#include "LocalSearch/EditBatch.h"
#include "LocalSearch/LocalSearch.h"
#include "LocalSearch/Proposals.h"
#include "Placement/Greedy.h"
#include "SearchTasks.h"
#include "Searches.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

/// A random task whose features are read up to `spread` times more or less
/// often in each of three periods.
ShardingProblem drifting(const TaskSettings &settings, uint64_t seed,
                         double spread) {
  ShardingProblem problem = randomTask(settings, seed);
  SplitMix64 random(seed);
  for (double weight : {3.0, 1.0, 2.0}) {
    Snapshot snapshot;
    snapshot.name = numbered("period ", problem.snapshots.size());
    snapshot.weight = weight;
    for (size_t i = 0; i < problem.features.size(); ++i) {
      double factor = std::pow(spread, 2 * random.real() - 1);
      snapshot.features.push_back({static_cast<int>(i),
                                   problem.features[i].meanPooling * factor, 0,
                                   random.below(4) == 0 ? 0.5 : 1});
    }
    problem.snapshots.push_back(std::move(snapshot));
  }
  return problem;
}

SearchOptions optionsFor(bool reference) {
  SearchOptions options;
  options.objective.kind =
      reference ? ObjectiveKind::Published : ObjectiveKind::Step;
  options.threads = 1;
  return options;
}

std::unique_ptr<CostModel> modelFor(bool reference) {
  return reference ? makeReferenceModel() : makeRooflineModel();
}

/// Plans for several periods are never worse than the plan for the mean
/// statistics, by construction, and clearly better on skewed periods, since the
/// mean of maxima is not the maximum of means.
TEST(DriftTest, PlansForThePeriodsAreNeverWorseThanForTheirMean) {
  int better = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    bool reference = seed % 2 == 0;
    ShardingProblem problem = drifting({3, 9, 2, 4, 0.6, 0.95}, seed, 5);
    std::unique_ptr<CostModel> model = modelFor(reference);
    SearchOptions options = optionsFor(reference);
    options.evaluationBudget = 4000;
    auto drift = search(problem, *model, options);
    auto mean = search(summarized(problem), *model, options);
    ASSERT_TRUE(drift && mean) << seed;
    EXPECT_EQ(text(verify(drift->plan, problem)), "");
    double meanMs =
        evaluate(problem, mean->plan, *model, options.objective).costMs;
    EXPECT_LE(drift->breakdown.costMs, meanMs * (1 + 1e-12)) << seed;
    better += drift->breakdown.costMs < 0.99 * meanMs;
  }
  EXPECT_GE(better, 7); // copies of small tables balance some of the rest
}

/// The cost of a board, before and after edits, is that which evaluate() finds
/// from scratch under each snapshot.
void followRandomSteps(const ShardingProblem &problem, const CostModel &model,
                       const SearchOptions &options, uint64_t seed) {
  SearchContext context(problem, model, options);
  std::vector<UnitPtr> units = *initialUnits(context);
  GreedyJob job;
  job.units = units;
  job.order = orderByCost(context, units);
  GreedyJob *jobs[] = {&job};
  GreedyPlacer(context, {kNoCap}).run(jobs);
  Board board(context, units, stateOf(context, job));
  MoveEstimate cost(board, 64);
  auto evaluated = [&] {
    return evaluate(problem, board.state().plan(), model, options.objective)
        .costMs;
  };
  EXPECT_NEAR(cost.costMs(), evaluated(), 1e-9 * cost.costMs());
  EXPECT_NEAR(cost.costMs(), board.state().costMs(), 1e-9 * cost.costMs());
  Proposals proposals(board, seed);
  int steps = 0;
  for (int i = 0; i < 120; ++i) {
    Edit edit = proposals.draw(cost.critical());
    if (edit.kind == Edit::None || !board.fits(edit))
      continue;
    EditBatch batch(board);
    batch.add(edit);
    batch.run();
    LoadChange change = batch.change(0);
    if (model.sumEmbedding()) {
      EditBatch::judge(board, edit, change);
      EXPECT_EQ(change.periods[1].load.compute.total(),
                batch.change(0).periods[1].load.compute.total());
    }
    double energy = cost.energyAfter(change);
    for (double factor : {1 - 1e-6, 1 + 1e-6})
      EXPECT_EQ(cost.isBelow(change, factor * energy), factor > 1);
    double exact = cost.costAfter(change);
    board.apply(edit, change);
    cost.apply(change);
    EXPECT_NEAR(cost.energyMs(), energy, 1e-6 * energy);
    cost.measure(true);
    EXPECT_NEAR(cost.costMs(), exact, 1e-9 * exact);
    EXPECT_NEAR(evaluated(), exact, 1e-9 * exact);
    ++steps;
  }
  EXPECT_GT(steps, 40);
}

TEST(DriftTest, BoardsKnowTheMeanAfterEveryStep) {
  for (uint64_t seed = 0; seed < 3; ++seed)
    for (bool reference : {false, true}) {
      ShardingProblem problem = drifting({10, 20, 3, 6, 0.6, 0.95}, seed, 4);
      // Two device classes, whose embeddings differ.
      problem.topology.devices.front().deviceClass = "A100-40GB";
      SearchOptions options = optionsFor(reference);
      followRandomSteps(problem, *modelFor(reference), options, seed);
      followRandomSteps(problem, SetsOnly(modelFor(reference)), options, seed);
    }
}

TEST(DriftTest, CoLocatedAndReplicatedTablesCountInEveryPeriod) {
  ShardingProblem problem = drifting({12, 12, 4, 4, 0.4, 0.95}, 7, 4);
  problem.constraints.coLocate = {{0, 1}};
  problem.constraints.tables = {{2, {ShardingKind::Replicated}, 1}};
  problem.tables[2].rows = 100;
  SearchOptions options = optionsFor(false);
  followRandomSteps(problem, *makeRooflineModel(), options, 1);
  options.evaluationBudget = 2000;
  auto result = search(problem, *makeRooflineModel(), options);
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(text(verify(result->plan, problem)), "");
}

TEST(DriftTest, SamePlanWithOneTwoAndEightThreads) {
  for (bool reference : {false, true}) {
    ShardingProblem problem = drifting({}, 5, 3);
    std::unique_ptr<CostModel> model = modelFor(reference);
    std::string first;
    for (int threads : {1, 2, 8}) {
      SearchOptions options = optionsFor(reference);
      options.evaluationBudget = 10'000;
      options.threads = threads;
      auto result = search(problem, *model, options);
      ASSERT_TRUE(result);
      std::string plan = writePlan(result->plan);
      if (first.empty())
        first = plan;
      EXPECT_EQ(plan, first) << threads << " threads";
    }
  }
}

/// Four tables that are alike in the mean; two are hot by day, two at night.
/// Those hot together must not share a device, which only the periods show.
TEST(DriftTest, TablesHotAtDifferentTimesShareADevice) {
  ShardingProblem problem;
  problem.batch.globalSize = 4096;
  problem.topology = *parseTopology("2xH200");
  std::vector<TableConstraint> whole;
  for (int i = 0; i < 4; ++i) {
    addTable(problem, makeTable(numbered("t", i), 100'000, 64), 10);
    whole.push_back({i, {ShardingKind::TableWise}, 1});
  }
  problem.constraints.tables = whole;
  problem.snapshots = {
      {"day",
       1,
       {{0, 19, 0, 1}, {1, 19, 0, 1}, {2, 1, 0, 1}, {3, 1, 0, 1}},
       {}},
      {"night",
       1,
       {{0, 1, 0, 1}, {1, 1, 0, 1}, {2, 19, 0, 1}, {3, 19, 0, 1}},
       {}}};
  auto model = makeRooflineModel();
  double bestMs = std::numeric_limits<double>::infinity(), worstMs = 0;
  for (int where = 0; where < 16; ++where) {
    std::vector<Shard> shards;
    for (int i = 0; i < 4; ++i)
      shards.push_back(makeShard(numbered("s", i), numbered("t", i), 0, 100'000,
                                 0, 64, {where >> i & 1}));
    double costMs =
        evaluate(problem, makePlan(problem, shards), *model, {}).costMs;
    bestMs = std::min(bestMs, costMs);
    // Two on each device, but those hot together on one.
    if (where == 3)
      worstMs = costMs;
  }
  EXPECT_LT(bestMs, 0.9 * worstMs);
  auto result = search(problem, *model, optionsFor(false));
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->breakdown.costMs, bestMs, 1e-12 * bestMs);
  auto deviceOf = [&](const std::string &table) {
    for (const Shard &shard : result->plan.shards)
      if (shard.table == table)
        return shard.devices.front();
    return -1;
  };
  EXPECT_NE(deviceOf("t0"), deviceOf("t1"));
  EXPECT_NE(deviceOf("t2"), deviceOf("t3"));
}

/// A search that would take hours ends when its caller stops it.
TEST(DriftTest, ProgressTellsAndEnds) {
  for (bool drift : {false, true}) {
    ShardingProblem problem = drifting({}, 3, 3);
    if (!drift)
      problem.snapshots.clear();
    SearchOptions options = optionsFor(false);
    options.evaluationBudget = 1'000'000'000;
    std::vector<SearchProgress> seen;
    options.progress = [&](const SearchProgress &progress) {
      seen.push_back(progress);
      return seen.size() < 3;
    };
    auto result = search(problem, *makeRooflineModel(), options);
    ASSERT_TRUE(result);
    EXPECT_EQ(text(verify(result->plan, problem)), "");
    EXPECT_EQ(result->stopReason, "ended by the progress callback");
    ASSERT_EQ(seen.size(), 3u) << "not asked again after the end";
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_GE(seen[i].share, i ? seen[i - 1].share : 0);
      EXPECT_LT(seen[i].share, 1);
      EXPECT_FALSE(seen[i].phase.empty());
    }
    EXPECT_TRUE(std::isfinite(seen.back().bestCostMs));
    EXPECT_LE(result->breakdown.costMs, seen.back().bestCostMs * (1 + 1e-9));
  }
}

TEST(DriftTest, TheDeadlineEndsASearchWithAPlan) {
  for (bool drift : {false, true})
    for (double seconds : {0.0, 0.1}) {
      ShardingProblem problem = drifting({}, 3, 3);
      if (!drift)
        problem.snapshots.clear();
      SearchOptions options = optionsFor(false);
      options.evaluationBudget = 1'000'000'000;
      options.deadlineSeconds = seconds;
      auto result = search(problem, *makeRooflineModel(), options);
      ASSERT_TRUE(result);
      EXPECT_EQ(text(verify(result->plan, problem)), "");
      EXPECT_EQ(result->stopReason, "deadline");
    }
}

} // namespace
