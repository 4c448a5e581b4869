//===- HotRowsSearchTest.cpp - Hot rows that the default search copies ----===//
//
// Compares plans for tables whose rows are in the order of their use with all
// choices of hot rows and of devices for the others, and shows where the search
// copies none.
//
//===----------------------------------------------------------------------===//

#include "Searches.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Support/Random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::Contains;
using testing::HasSubstr;

namespace {

AccessStatistics usesByPower(double exponent) {
  AccessStatistics access;
  access.batch = 4096;
  access.reuse[0] = 0.8;
  access.reuse[3] = 0.2;
  for (double rows = 1e-4; rows < 0.5; rows *= 5)
    access.rowMass.push_back({rows, std::pow(rows, exponent)});
  access.rowMass.push_back({1, 1});
  access.rowsByUse = true;
  return access;
}

ShardingProblem drawOrderedTables(MersenneTwister &dice) {
  ShardingProblem problem;
  int devices = static_cast<int>(dice.between(2, 3));
  problem.topology = *parseTopology(std::to_string(devices) + "xCPU@1GiB");
  problem.batch.globalSize = int64_t{2048} << dice.below(3);
  problem.constraints.reserves = {0, 0, 0};
  for (int i = 0; i < 2; ++i) {
    Table table =
        makeTable(numbered("t", i),
                  static_cast<int64_t>(2e4 * std::pow(30, dice.uniform())),
                  int64_t{16} << dice.below(3),
                  dice.oneOf({OptimizerKind::SGD, OptimizerKind::Adagrad}));
    if (i == 0 || dice.chance(70))
      table.access = usesByPower(0.1 + 0.5 * dice.uniform());
    addTable(problem, table, static_cast<double>(dice.between(2, 20)));
    if (dice.chance(60))
      problem.features.back().pooling = Pooling::None;
  }
  return problem;
}

std::vector<int> devicesOf(const ShardingProblem &problem) {
  std::vector<int> all(static_cast<size_t>(problem.topology.deviceCount()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// A table whole on each device, on all, and with each number of hot rows, the
/// others on each device.
std::vector<std::vector<Shard>> formsOfTable(const ShardingProblem &problem,
                                             const Table &table) {
  std::vector<int> all = devicesOf(problem);
  auto shard = [&](const char *suffix, int64_t begin, int64_t end,
                   std::vector<int> devices) {
    return makeShard(table.name + suffix, table.name, begin, end, 0, table.dim,
                     std::move(devices));
  };
  std::vector<std::vector<Shard>> forms = {{shard("", 0, table.rows, all)}};
  for (int device : all)
    forms.push_back({shard("", 0, table.rows, {device})});
  if (!table.access)
    return forms;
  for (const RowMassQuantile &point : table.access->rowMass)
    if (auto hot = static_cast<int64_t>(
            std::llround(point.rowShare * static_cast<double>(table.rows)));
        hot > 0 && hot < table.rows)
      for (int device : all)
        forms.push_back({shard("_hot", 0, hot, all),
                         shard("_cold", hot, table.rows, {device})});
  return forms;
}

double leastOfFormsMs(const ShardingProblem &problem, const CostModel &model) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<Shard> &first :
       formsOfTable(problem, problem.tables[0]))
    for (std::vector<Shard> shards : formsOfTable(problem, problem.tables[1])) {
      shards.insert(shards.end(), first.begin(), first.end());
      ShardingPlan plan = makePlan(problem, std::move(shards));
      if (verify(plan, problem).empty())
        least = std::min(least, evaluate(problem, plan, model, {}).costMs);
    }
  return least;
}

bool hasHotRows(const ShardingProblem &problem, const ShardingPlan &plan) {
  return std::ranges::any_of(plan.shards, [&](const Shard &shard) {
    int table = problem.tableIndex(shard.table);
    return shard.hasCopies() && shard.rowBegin == 0 &&
           shard.rowEnd < problem.tables[static_cast<size_t>(table)].rows;
  });
}

SearchOptions shortSearch() {
  SearchOptions options;
  options.evaluationBudget = 2000;
  options.threads = 1;
  return options;
}

TEST(HotRowsSearchTest, IsWithinOnePercentOfTheBest) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  const uint64_t problems = std::getenv("NEUROSHARD_ALL") ? 200 : 12;
  uint64_t hot = 0;
  double worst = 0, gain = 0;
  for (uint64_t seed = 0; seed < problems; ++seed) {
    SCOPED_TRACE(seed);
    MersenneTwister dice(seed);
    ShardingProblem problem = drawOrderedTables(dice);
    SearchResult result = test::mustPlan(problem, *model, shortSearch());
    EXPECT_EQ(text(verify(result.plan, problem)), "");
    double cost = result.breakdown.costMs;
    EXPECT_EQ(cost, evaluate(problem, result.plan, *model, {}).costMs);
    EXPECT_LE(result.lowerBoundMs, cost);
    double least = leastOfFormsMs(problem, *model);
    EXPECT_LE(cost, 1.01 * least);
    worst = std::max(worst, cost / least - 1);
    hot += hasHotRows(problem, result.plan);
    // What is known of the order of rows must not make plans worse.
    ShardingProblem unordered = problem;
    for (Table &table : unordered.tables)
      if (table.access)
        table.access->rowsByUse = false;
    SearchResult other = test::mustPlan(unordered, *model, shortSearch());
    double without = evaluate(problem, other.plan, *model, {}).costMs;
    EXPECT_LE(cost, without * (1 + 1e-9));
    gain += std::log(without / cost);
  }
  std::printf(
      "%d of %d with hot rows, %.2f %% above the best at worst, %.1f %% "
      "faster than without the order of rows\n",
      static_cast<int>(hot), static_cast<int>(problems), 100 * worst,
      100 * (std::exp(gain / static_cast<double>(problems)) - 1));
  EXPECT_GT(hot, problems / 4);
}

/// One table with sequences of hot ids, too large for copies.
ShardingProblem sequences(const std::string &topology) {
  ShardingProblem problem;
  problem.topology = *parseTopology(topology);
  problem.batch.globalSize = 8192;
  problem.constraints.reserves = {0, 0, 0};
  Table table = makeTable("items", 4'000'000, 64, OptimizerKind::Adagrad);
  table.access = usesByPower(0.1);
  addTable(problem, table, 20);
  problem.features[0].pooling = Pooling::None;
  return problem;
}

TEST(HotRowsSearchTest, SaysWhichRowsAreHot) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  for (const char *topology : {"4xCPU@3GiB", "2x2xCPU@3GiB"}) {
    SCOPED_TRACE(topology);
    ShardingProblem problem = sequences(topology);
    SearchResult result = test::mustPlan(problem, *model, shortSearch());
    ASSERT_TRUE(hasHotRows(problem, result.plan));
    EXPECT_EQ(text(verify(result.plan, problem)), "");
    EXPECT_THAT(result.explanation,
                Contains(HasSubstr("the hot rows of 1 table have copies: ")));
    EXPECT_THAT(result.explanation,
                Contains(HasSubstr("table 'items' is hot: rows [0, ")));
  }
}

// With even shares of the ids blocks of rows would fit; with theirs columns do.
TEST(HotRowsSearchTest, FindsPlansWhereEvenBlocksDoNotFit) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  ShardingProblem problem = sequences("4xCPU@150MiB");
  problem.batch.globalSize = 4096;
  problem.tables[0].rows = 1'000'000;
  problem.features[0].meanPooling = 5;
  problem.features[0].p99Pooling = 10;
  SearchResult result = test::mustPlan(problem, *model, shortSearch());
  EXPECT_EQ(text(verify(result.plan, problem)), "");
  // A little more memory does not make it dearer.
  problem.topology = *parseTopology("4xCPU@160MiB");
  EXPECT_LE(test::mustPlan(problem, *model, shortSearch()).breakdown.costMs,
            result.breakdown.costMs * 1.001);
  // Where the rules ask for blocks, their borders move.
  problem.topology = *parseTopology("4xCPU@600MiB");
  problem.constraints.tables.push_back({0, {ShardingKind::RowWise}, 1});
  result = test::mustPlan(problem, *model, shortSearch());
  EXPECT_EQ(text(verify(result.plan, problem)), "");
  std::vector<Shard> shards = result.plan.shards;
  std::ranges::sort(shards, {}, &Shard::rowBegin);
  EXPECT_LT(2 * shards.front().rows(), shards.back().rows());
}

TEST(HotRowsSearchTest, NoneWhereNothingSaysWhichRowsAreHot) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  ShardingProblem problem = sequences("4xCPU@3GiB");
  auto find = [&](Algorithm algorithm = Algorithm::Default) {
    SearchOptions options = shortSearch();
    options.algorithm = algorithm;
    return hasHotRows(problem, test::mustPlan(problem, *model, options).plan);
  };
  EXPECT_TRUE(find());
  EXPECT_FALSE(find(Algorithm::Dim));
  problem.tables[0].access->rowsByUse = false;
  EXPECT_FALSE(find());
  problem.tables[0].access->rowsByUse = true;
  problem.constraints.tables.push_back(
      {0, {ShardingKind::TableWise, ShardingKind::RowWise}, 1});
  EXPECT_FALSE(find());
}

} // namespace
