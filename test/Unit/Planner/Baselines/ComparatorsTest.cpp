//===- ComparatorsTest.cpp - The torchrec and threshold planners ----------===//

#include "Searches.h"
#include "neuroshard/CostModel/Roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

namespace {

/// A device takes width x pooling of each of its shards, in ms, by the shard's
/// share of the rows; exchanges cost nothing.
SumModel additiveModel() {
  return SumModel([](const ShardWork &shard) {
    return ComputeMs{static_cast<double>(shard.width) * shard.pooling *
                         static_cast<double>(shard.rows) /
                         static_cast<double>(shard.tableRows),
                     0};
  });
}

/// `count` tables "t0", ... of 1000 x dim, each read with pooling 1.
ShardingProblem equalTables(int count, int64_t dim,
                            const std::string &topology = "2xCPU@1GiB") {
  ShardingProblem problem;
  problem.batch.globalSize = 64;
  problem.topology = *parseTopology(topology);
  problem.memoryModel = MemoryModel::WeightsOnly;
  for (int i = 0; i < count; ++i)
    addTable(problem, makeTable(numbered("t", i), 1000, dim), 1);
  return problem;
}

void allow(ShardingProblem &problem, std::vector<ShardingKind> kinds,
           int64_t minWidth = 1) {
  for (size_t i = 0; i < problem.tables.size(); ++i)
    problem.constraints.tables.push_back(
        {static_cast<int>(i), kinds, minWidth});
}

SearchResult mustPlan(const ShardingProblem &problem, Algorithm algorithm,
                      int threads = 1) {
  SearchOptions options;
  options.algorithm = algorithm;
  options.threads = threads;
  return test::mustPlan(problem, additiveModel(), options);
}

/// "rows x width @ devices" of each shard, in the plan's order.
std::vector<std::string> shapes(const SearchResult &result) {
  std::vector<std::string> list;
  for (const Shard &shard : result.plan.shards) {
    std::string line = std::to_string(shard.rows());
    line.append("x").append(std::to_string(shard.width())).append("@");
    for (int device : shard.devices)
      line.append(std::to_string(device));
    list.push_back(line);
  }
  return list;
}

double costOf(const ShardingProblem &problem, Algorithm algorithm) {
  return mustPlan(problem, algorithm).breakdown.costMs;
}

// Three tables of 64 on two devices: one of them in halves gives 96 each.
TEST(TorchRecSearchTest, CutsColumnsDownToTheMinPartitionItTries) {
  ShardingProblem problem = equalTables(3, 64);
  allow(problem, {ShardingKind::TableWise, ShardingKind::ColumnWise});
  EXPECT_EQ(costOf(problem, Algorithm::TorchRec), 96);
}

TEST(TorchRecSearchTest, MinWidthIsItsMinPartition) {
  ShardingProblem problem = equalTables(3, 64);
  allow(problem, {ShardingKind::TableWise, ShardingKind::ColumnWise}, 33);
  EXPECT_EQ(costOf(problem, Algorithm::TorchRec), 128);
}

// The smallest divisor of 80 from 24 on that is a multiple of 4 is 40.
TEST(TorchRecSearchTest, ColumnPiecesOfATableHaveOneWidth) {
  ShardingProblem problem = equalTables(1, 80);
  allow(problem, {ShardingKind::TableWise, ShardingKind::ColumnWise}, 24);
  EXPECT_THAT(shapes(mustPlan(problem, Algorithm::TorchRec)),
              ElementsAre("1000x40@0", "1000x40@1"));
}

TEST(TorchRecSearchTest, RowWiseIsACeilingBlockOnEveryDevice) {
  ShardingProblem problem = equalTables(1, 16, "2x2xCPU@1GiB");
  problem.tables[0].rows = 1001;
  allow(problem, {ShardingKind::TableWise, ShardingKind::RowWise});
  problem.target = Target::TorchRec19;
  EXPECT_THAT(shapes(mustPlan(problem, Algorithm::TorchRec)),
              ElementsAre("251x16@0", "251x16@1", "251x16@2", "248x16@3"));
}

// The second table's group is the one the first left.
TEST(TorchRecSearchTest, TableRowWiseStaysInTheGroupWithTheLeast) {
  ShardingProblem problem = equalTables(2, 16, "2x2xCPU@1GiB");
  allow(problem, {ShardingKind::TableWise, ShardingKind::TableRowWise});
  problem.target = Target::TorchRec19;
  // Too large for one device, not for a group.
  for (Device &device : problem.topology.devices)
    device.memoryBytes = 40'000;
  EXPECT_THAT(shapes(mustPlan(problem, Algorithm::TorchRec)),
              ElementsAre("500x16@0", "500x16@1", "500x16@2", "500x16@3"));
}

TEST(TorchRecSearchTest, GridCutsEachColumnPieceByTheRowsOfAGroup) {
  ShardingProblem problem = equalTables(1, 64, "2x2xCPU@1GiB");
  allow(problem, {ShardingKind::RowColumn}, 32);
  EXPECT_THAT(shapes(mustPlan(problem, Algorithm::TorchRec)),
              ElementsAre("500x32@0", "500x32@2", "500x32@1", "500x32@3"));
}

TEST(TorchRecSearchTest, TriesEveryProposalOfASmallGrid) {
  ShardingProblem problem = equalTables(5, 64);
  allow(problem, {ShardingKind::TableWise, ShardingKind::RowWise});
  SearchResult result = mustPlan(problem, Algorithm::TorchRec);
  // 2^5 for each of three min_partitions, which make no difference here.
  EXPECT_EQ(result.evaluations, 96);
  EXPECT_EQ(result.stopReason, "96 proposals, of which 96 could be placed");
}

// 20 tables x 2 forms: the walks take 20 steps each, the grid is too large.
TEST(TorchRecSearchTest, WalksGreedilyWhereTheGridIsTooLarge) {
  ShardingProblem problem = equalTables(20, 16);
  allow(problem, {ShardingKind::TableWise, ShardingKind::RowWise});
  EXPECT_LE(mustPlan(problem, Algorithm::TorchRec).evaluations, 3 * 42);
}

TEST(TorchRecSearchTest, PlansAroundHandWrittenAndCoLocatedTables) {
  ShardingProblem problem = equalTables(4, 16, "2x2xCPU@1GiB");
  problem.constraints.fixedShards = {
      makeShard("hand", "t0", 0, 400, 0, 16, {3})};
  problem.constraints.coLocate = {{1, 2}};
  problem.constraints.pins = {{3, {2}}};
  SearchResult result = mustPlan(problem, Algorithm::TorchRec);
  EXPECT_EQ(result.plan.shards.front().name, "hand");
  EXPECT_EQ(result.plan.shards.back().devices, std::vector<int>{2});
}

TEST(TorchRecSearchTest, SaysThatTheAlgorithmFoundNothing) {
  // It fits only in row shards of unequal sizes, which TorchRec does not make.
  ShardingProblem problem = equalTables(1, 4);
  problem.topology.devices[0].memoryBytes = 13'000;
  problem.topology.devices[1].memoryBytes = 4'000;
  SearchOptions options;
  options.algorithm = Algorithm::TorchRec;
  auto result = search(problem, additiveModel(), options);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().limit, Limit::Algorithm);
  EXPECT_THAT(result.error().message,
              HasSubstr("algorithm 'torchrec' found no placement"));
  options.algorithm = Algorithm::Default;
  EXPECT_TRUE(search(problem, additiveModel(), options).has_value());
}

// Elements of a mean device: 16000. Slices of at most that: 4 of 16 columns.
TEST(ThresholdSearchTest, SlicesColumnsIntoAPowerOfTwo) {
  ShardingProblem problem = equalTables(1, 64, "4xCPU@1GiB");
  allow(problem, {ShardingKind::TableWise, ShardingKind::ColumnWise});
  EXPECT_THAT(shapes(mustPlan(problem, Algorithm::Threshold)),
              ElementsAre("1000x16@0", "1000x16@1", "1000x16@2", "1000x16@3"));
}

TEST(ThresholdSearchTest, NarrowTablesGetFewerSlices) {
  ShardingProblem problem = equalTables(1, 12, "4xCPU@1GiB");
  allow(problem, {ShardingKind::TableWise, ShardingKind::ColumnWise});
  EXPECT_THAT(shapes(mustPlan(problem, Algorithm::Threshold)),
              ElementsAre("1000x4@0", "1000x4@1", "1000x4@2"));
}

TEST(ThresholdSearchTest, LargeTablesAreCutByRowsOverAllDevices) {
  ShardingProblem problem = equalTables(1, 64, "4xCPU@1GiB");
  allow(problem, {ShardingKind::TableWise, ShardingKind::RowWise});
  EXPECT_THAT(shapes(mustPlan(problem, Algorithm::Threshold)),
              ElementsAre("250x64@0", "250x64@1", "250x64@2", "250x64@3"));
}

// The small table's 40 elements are less than 1e-3 of a mean device's.
TEST(ThresholdSearchTest, SmallTablesAreReplicatedWhereThatIsAllowed) {
  ShardingProblem problem = equalTables(1, 64);
  problem.tables[0].rows = 100000;
  addTable(problem, makeTable("small", 10, 4), 1000);
  allow(problem, {ShardingKind::TableWise, ShardingKind::Replicated});
  SearchResult result = mustPlan(problem, Algorithm::Threshold);
  // Each device looks up half of the batch, one of them the large table, too.
  EXPECT_EQ(result.breakdown.costMs, 2000 + 64);
  EXPECT_THAT(result.tried, SizeIs(1));
}

class ComparatorsTest : public testing::TestWithParam<Algorithm> {};

TEST_P(ComparatorsTest, DoesNotDependOnThreads) {
  ShardingProblem problem = equalTables(12, 64, "2x4xCPU@1GiB");
  for (size_t i = 0; i < problem.tables.size(); ++i)
    problem.tables[i].rows += static_cast<int64_t>(i) * 100;
  SearchResult one = mustPlan(problem, GetParam(), 1);
  EXPECT_EQ(mustPlan(problem, GetParam(), 2).plan, one.plan);
  EXPECT_EQ(mustPlan(problem, GetParam(), 8).plan, one.plan);
}

TEST_P(ComparatorsTest, EndsAtTheDeadlineWithAPlan) {
  ShardingProblem problem = equalTables(200, 128, "2x4xCPU@1GiB");
  SearchOptions options;
  options.algorithm = GetParam();
  options.deadlineSeconds = 0;
  auto result = search(problem, *makeRooflineModel(), options);
  ASSERT_TRUE(result.has_value()) << result.error().str();
  EXPECT_EQ(text(verify(result->plan, problem)), "");
}

INSTANTIATE_TEST_SUITE_P(All, ComparatorsTest,
                         testing::Values(Algorithm::TorchRec,
                                         Algorithm::Threshold));

} // namespace
