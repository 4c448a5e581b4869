//===- CopiesInGroupsTest.cpp - Copies that the default search adds -------===//
//
// Compares the copies in groups that a search chooses with others, and shows
// where it chooses none.
//
//===----------------------------------------------------------------------===//

#include "Searches.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

namespace {

/// Tables whose rows repeat in a batch, on nodes with slow links.
ShardingProblem repeatedRows(unsigned seed, const std::string &topology) {
  std::mt19937 random(seed);
  ShardingProblem problem;
  problem.batch.globalSize = 4096;
  problem.topology = *parseTopology(topology);
  for (int i = 0; i < 4; ++i)
    addTable(problem,
             makeTable(numbered("t", i),
                       static_cast<int64_t>(300 << random() % 6),
                       16 << random() % 3),
             1 << random() % 3);
  return problem;
}

SearchOptions fewEdits() {
  SearchOptions options;
  options.evaluationBudget = 2000;
  options.threads = 1;
  return options;
}

bool hasCopies(const ShardingProblem &problem, const ShardingPlan &plan) {
  return std::ranges::any_of(plan.shards, [&](const Shard &shard) {
    const Table &table =
        problem.tables[static_cast<size_t>(problem.tableIndex(shard.table))];
    return shard.hasCopies() &&
           !isReplicated(table, shard, problem.topology.deviceCount());
  });
}

/// The plan with a copy of one table in each group, on the device with this
/// index.
ShardingPlan withCopy(const ShardingProblem &problem, ShardingPlan plan,
                      int table, int index, int groupSize) {
  const Table &source = problem.tables[static_cast<size_t>(table)];
  std::erase_if(plan.shards,
                [&](const Shard &shard) { return shard.table == source.name; });
  Shard &copy = plan.shards.emplace_back();
  copy.name = copy.table = source.name;
  copy.rowEnd = source.rows;
  copy.colEnd = source.dim;
  for (int device = index; device < problem.topology.deviceCount();
       device += groupSize)
    copy.devices.push_back(device);
  return plan;
}

TEST(CopiesInGroupsTest, AreNearTheBest) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  int copied = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    ShardingProblem problem =
        repeatedRows(seed, seed % 2 ? "2x2xCPU@1gbit" : "3x4xCPU@1gbit");
    SearchResult result = test::mustPlan(problem, *model, fewEdits());
    EXPECT_TRUE(verify(result.plan, problem).empty());
    EXPECT_EQ(result.breakdown.costMs,
              evaluate(problem, result.plan, *model, {}).costMs);
    EXPECT_LE(result.lowerBoundMs, result.breakdown.costMs);
    copied += hasCopies(problem, result.plan);
    // No other copy of one table is much cheaper.
    int groupSize = seed % 2 ? 2 : 4;
    for (int table = 0; table < 4; ++table)
      for (int index = 0; index < groupSize; ++index)
        EXPECT_GE(
            evaluate(problem,
                     withCopy(problem, result.plan, table, index, groupSize),
                     *model, {})
                .costMs,
            result.breakdown.costMs * 0.99);
  }
  EXPECT_GT(copied, 2);
}

TEST(CopiesInGroupsTest, SayWhatTheyBring) {
  ShardingProblem problem = repeatedRows(6, "2x2xCPU@100mbit");
  std::unique_ptr<CostModel> model = makeRooflineModel();
  SearchResult result = test::mustPlan(problem, *model, fewEdits());
  ASSERT_TRUE(hasCopies(problem, result.plan));
  EXPECT_THAT(result.explanation, Contains(HasSubstr(" copies: ")));
}

TEST(CopiesInGroupsTest, NoneWhereTheyMayNotBe) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  auto find = [&](const ShardingProblem &problem,
                  Algorithm algorithm = Algorithm::Default) {
    SearchOptions options = fewEdits();
    options.algorithm = algorithm;
    return hasCopies(problem, test::mustPlan(problem, *model, options).plan);
  };
  ShardingProblem problem = repeatedRows(6, "2x2xCPU@100mbit");
  EXPECT_TRUE(find(problem));
  EXPECT_FALSE(find(problem, Algorithm::Dim));
  EXPECT_FALSE(find(repeatedRows(6, "4xCPU@1GiB")));
  ShardingProblem pinned = problem;
  pinned.constraints.pins.push_back({0, {0}});
  EXPECT_FALSE(find(pinned));
  for (int table = 0; table < 4; ++table)
    problem.constraints.tables.push_back(
        {table,
         {ShardingKind::TableWise, ShardingKind::RowWise,
          ShardingKind::ColumnWise},
         1});
  EXPECT_FALSE(find(problem));
}

/// Tables so large that a step sends no copy's sums, but cheap to average.
TEST(CopiesInGroupsTest, DriftWhereTheyAreAskedTo) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  for (const char *topology : {"2x2xCPU@1gbit", "4xCPU@16GiB"}) {
    SCOPED_TRACE(topology);
    ShardingProblem problem = repeatedRows(6, topology);
    SearchResult exact = test::mustPlan(problem, *model, fewEdits());
    EXPECT_TRUE(std::ranges::none_of(exact.plan.shards, &Shard::copiesDrift));
    for (int table = 0; table < 4; ++table)
      problem.constraints.tables.push_back({.table = table, .syncEvery = 1000});
    SearchResult result = test::mustPlan(problem, *model, fewEdits());
    EXPECT_TRUE(verify(result.plan, problem).empty());
    EXPECT_TRUE(std::ranges::any_of(result.plan.shards, &Shard::copiesDrift));
    EXPECT_EQ(result.breakdown.costMs,
              evaluate(problem, result.plan, *model, {}).costMs);
    EXPECT_LT(result.breakdown.costMs, exact.breakdown.costMs);
    EXPECT_LE(result.lowerBoundMs, result.breakdown.costMs);
  }
}

} // namespace
