//===- JoinPiecesTest.cpp - Cuts that gain nothing are undone -------------===//

#include "Searches.h"

#include <gmock/gmock.h>

#include <set>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::SizeIs;

namespace {

/// Compute of width x pooling, less a share for column shards, which is the
/// kind of error that a fitted model may have.
SumModel discountModel(double discount) {
  return SumModel([discount](const ShardWork &shard) {
    return ComputeMs{static_cast<double>(shard.width) * shard.pooling *
                         (shard.width < shard.tableDim ? 1 - discount : 1),
                     0};
  });
}

ShardingProblem tables(int count, const char *topology) {
  ShardingProblem problem;
  problem.batch.globalSize = 64;
  problem.topology = *parseTopology(topology);
  problem.constraints.reserves = {0, 0, 0};
  for (int i = 0; i < count; ++i)
    addTable(problem, makeTable(numbered("t", i), 100, 32), i + 1);
  return problem;
}

std::vector<Shard> shardsUnder(const ShardingProblem &problem,
                               double discount) {
  return mustPlan(problem, discountModel(discount)).plan.shards;
}

int together(const std::vector<Shard> &shards) {
  std::set<std::pair<std::string, int>> places;
  int count = 0;
  for (const Shard &shard : shards)
    for (int device : shard.devices)
      count += !places.emplace(shard.table, device).second;
  return count;
}

TEST(JoinPiecesTest, OneDeviceGetsWholeTables) {
  EXPECT_THAT(shardsUnder(tables(6, "1xCPU@1GiB"), 0.002), SizeIs(6));
}

TEST(JoinPiecesTest, PiecesOfATableAreOnDifferentDevices) {
  for (int count = 1; count < 6; ++count)
    EXPECT_EQ(together(shardsUnder(tables(count, "2xCPU@1GiB"), 0.002)), 0)
        << count;
}

TEST(JoinPiecesTest, SavingsAboveTheNoiseOfAModelAreBelieved) {
  EXPECT_GT(shardsUnder(tables(6, "1xCPU@1GiB"), 0.05).size(), 6u);
}

TEST(JoinPiecesTest, RulesStillDecide) {
  ShardingProblem problem = tables(2, "2xCPU@1GiB");
  problem.constraints.tables.push_back({0, {ShardingKind::ColumnWise}});
  problem.constraints.pins.push_back({0, {1}});
  problem.constraints.fixedShards = {
      makeShard("left", "t1", 0, 100, 0, 16, {0}),
      makeShard("right", "t1", 0, 100, 16, 32, {0})};
  std::vector<Shard> shards = shardsUnder(problem, 0.002);
  EXPECT_THAT(shards, SizeIs(4));
  EXPECT_EQ(together(shards), 2);
}

} // namespace
