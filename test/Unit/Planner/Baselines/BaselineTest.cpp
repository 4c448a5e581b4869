//===- BaselineTest.cpp - The greedy baselines place by their own key -----===//

#include "Searches.h"
#include "neuroshard/CostModel/Roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::ElementsAre;

namespace {

/// Keys by which the tables' orders differ:
///          rows    dim  pooling   rows*dim  dim*pooling  ...*log10(rows)
///   a     10000     32        1     320000           32              128
///   b       100     16       10       1600          160              320
///   c    100000      8        4     800000           32              160
///   d      1000      8       21       8000          168              504
///   e        10     24        2        240           48               48
ShardingProblem fiveTables() {
  ShardingProblem problem;
  problem.batch.globalSize = 64;
  problem.topology = *parseTopology("2xCPU@1GiB");
  addTable(problem, makeTable("a", 10000, 32), 1);
  addTable(problem, makeTable("b", 100, 16), 10);
  addTable(problem, makeTable("c", 100000, 8), 4);
  addTable(problem, makeTable("d", 1000, 8), 21);
  addTable(problem, makeTable("e", 10, 24), 2);
  return problem;
}

std::vector<int> devicesOf(const ShardingProblem &problem,
                           SearchOptions options) {
  SearchResult result = mustPlan(problem, *makeRooflineModel(), options);
  std::vector<int> devices;
  for (const Shard &shard : result.plan.shards)
    devices.push_back(shard.devices.front());
  return devices;
}

std::vector<int> devicesOf(Algorithm algorithm) {
  SearchOptions options;
  options.algorithm = algorithm;
  return devicesOf(fiveTables(), options);
}

// Dim: a 32 -> 0; e 24 -> 1; b 16 -> 1 (24 < 32); c 8 -> 0 (32 < 40);
// d 8: 40 against 40, the device with less memory used, 1.
TEST(BaselineTest, Dim) {
  EXPECT_THAT(devicesOf(Algorithm::Dim), ElementsAre(0, 1, 0, 1, 1));
}

// Size: c -> 0, a -> 1, d -> 1, b -> 1, e -> 1 (all below c's 800000).
TEST(BaselineTest, Size) {
  EXPECT_THAT(devicesOf(Algorithm::Size), ElementsAre(1, 1, 0, 1, 1));
}

// Lookup: d 168 -> 0, b 160 -> 1, e 48 -> 1, a 32 -> 0, c 32 -> 0.
TEST(BaselineTest, Lookup) {
  EXPECT_THAT(devicesOf(Algorithm::Lookup), ElementsAre(0, 1, 0, 0, 1));
}

// Size-lookup: d 504 -> 0, b 320 -> 1, c 160 -> 1, a 128 -> 1 (480 < 504),
// e 48 -> 0 (504 < 608).
TEST(BaselineTest, SizeLookup) {
  EXPECT_THAT(devicesOf(Algorithm::SizeLookup), ElementsAre(1, 1, 1, 0, 0));
}

TEST(BaselineTest, RandomDependsOnTheSeedAlone) {
  SearchOptions options;
  options.algorithm = Algorithm::Random;
  std::map<std::vector<int>, int> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    options.seed = seed;
    std::vector<int> devices = devicesOf(fiveTables(), options);
    EXPECT_EQ(devicesOf(fiveTables(), options), devices);
    ++seen[devices];
  }
  EXPECT_GT(seen.size(), 5u);
}

TEST(BaselineTest, SkipsDevicesWithoutRoom) {
  ShardingProblem problem = fiveTables();
  problem.memoryModel = MemoryModel::WeightsOnly;
  // c takes 3.2 MB, a 1.28 MB; device 1 holds only small tables.
  problem.topology.devices[0].memoryBytes = 4'600'000;
  problem.topology.devices[1].memoryBytes = 50'000;
  SearchOptions options;
  options.algorithm = Algorithm::Size;
  EXPECT_THAT(devicesOf(problem, options), ElementsAre(0, 1, 0, 1, 1));
}

} // namespace
