//===- RooflineTest.cpp - The roofline's formulas against hand numbers ----===//

#include "neuroshard/CostModel/Roofline.h"
#include "Support.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

const DeviceClass &h200() { return *findDeviceClass("H200"); }

/// One table, f32, i64 ids, batch 65536, on 8 H200s.
ShardingProblem oneTable(int64_t rows, int64_t dim, double pooling) {
  ShardingProblem problem;
  problem.batch.globalSize = 65536;
  problem.topology = *parseTopology("8xH200");
  addTable(problem, makeTable("a", rows, dim), pooling);
  return problem;
}

ComputeMs computeOf(const ShardingProblem &problem,
                    const std::vector<Shard> &shards) {
  std::vector<ShardWork> works;
  for (const Shard &shard : shards)
    works.push_back(describeShard(problem, 0, {0}, shard));
  ShardSet set{&h200(), {}};
  for (const ShardWork &work : works)
    set.shards.push_back(&work);
  ComputeMs time;
  makeRooflineModel()->computeMs({&set, 1}, {&time, 1});
  return time;
}

Shard whole(const ShardingProblem &problem) {
  const Table &table = problem.tables[0];
  return makeShard("a_0", "a", 0, table.rows, 0, table.dim, {0});
}

// 1e12 rows: every id is new, so all rows come from memory.
TEST(RooflineTest, ForwardBytesOfDistinctRows) {
  ShardingProblem problem = oneTable(1'000'000'000'000, 128, 20);
  double ids = 65536 * 20.0;
  double unique = -1e12 * std::expm1(-ids / 1e12);
  double bytes = ids * 8 + 65536 * 8 + 65536 * 128 * 4 + unique * 512;
  double expected = 0.010 + 0.0005 + bytes / 4300e9 * 1e3;
  EXPECT_NEAR(computeOf(problem, {whole(problem)}).forwardMs, expected,
              1e-4 * expected);
}

// One row: all but the first read come from the cache, which then binds.
TEST(RooflineTest, RepeatedRowsComeFromTheCache) {
  ShardingProblem problem = oneTable(1, 128, 20);
  double ids = 65536 * 20.0;
  double stream = ids * 4 + 65536 * 4 + 65536 * 128 * 4;
  double cache = stream + ids * 512;
  double expected = 0.0105 + cache / 9000e9 * 1e3;
  EXPECT_NEAR(computeOf(problem, {whole(problem)}).forwardMs, expected,
              1e-9 * expected);
}

TEST(RooflineTest, RowsAreReadInSectorsOf32Bytes) {
  // 4 columns of f32 cost as much to read as 8; results and ids differ.
  ShardingProblem narrow = oneTable(1'000'000'000'000, 4, 20);
  ShardingProblem wide = oneTable(1'000'000'000'000, 8, 20);
  double results = 65536 * 4 * 4;
  EXPECT_NEAR(computeOf(wide, {whole(wide)}).forwardMs -
                  computeOf(narrow, {whole(narrow)}).forwardMs,
              results / 4300e9 * 1e3, 1e-9);
}

TEST(RooflineTest, BackwardBytes) {
  ShardingProblem problem = oneTable(1'000'000'000'000, 128, 20);
  problem.tables[0].optimizer.kind = OptimizerKind::Adam;
  double ids = 65536 * 20.0;
  double unique = -1e12 * std::expm1(-ids / 1e12);
  // Gradients once, rows and two moments both ways, 4 sort passes of 12 byte
  // pairs both ways.
  double bytes = 65536 * 128 * 4 + 2 * unique * (512 + 1024) + ids * 12 * 2 * 4;
  double expected = 0.060 + 0.0005 + bytes / (4300e9 * 0.45) * 1e3;
  EXPECT_NEAR(computeOf(problem, {whole(problem)}).backwardMs, expected,
              1e-4 * expected);
}

TEST(RooflineTest, ExactNormsCostTime) {
  ShardingProblem problem = oneTable(1'000'000, 128, 20);
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  Shard half = makeShard("a_0", "a", 0, 1'000'000, 0, 64, {0});
  double exact = computeOf(problem, {half}).backwardMs;
  problem.optimizerSemantics = OptimizerSemantics::PerShard;
  EXPECT_GT(exact, computeOf(problem, {half}).backwardMs);
}

TEST(RooflineTest, RowsInHostMemoryCrossTheLink) {
  ShardingProblem problem = oneTable(1'000'000, 128, 20);
  problem.target = Target::TorchRec19;
  problem.tables[0].optimizer.kind = OptimizerKind::Adagrad;
  ComputeMs onDevice = computeOf(problem, {whole(problem)});
  Shard shard = whole(problem);
  shard.tier = Tier::Dram;
  double unique = -1e6 * std::expm1(-65536 * 20.0 / 1e6);
  // 512 bytes a row; back and forth with as much state.
  double forward = unique * 512 / 50e9 * 1e3;
  ComputeMs onHost = computeOf(problem, {shard});
  EXPECT_NEAR(onHost.forwardMs - onDevice.forwardMs, forward, 1e-9 * forward);
  EXPECT_NEAR(onHost.backwardMs - onDevice.backwardMs, 4 * forward,
              1e-9 * forward);
  // All rows alike: a cache of a quarter saves a quarter.
  problem.cacheLoadFactor = 0.25;
  onHost = computeOf(problem, {shard});
  EXPECT_NEAR(onHost.forwardMs - onDevice.forwardMs, 0.75 * forward,
              1e-9 * forward);
  // The state of a row-wise optimizer stays on the device.
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  onDevice = computeOf(problem, {whole(problem)});
  onHost = computeOf(problem, {shard});
  EXPECT_NEAR(onHost.backwardMs - onDevice.backwardMs, 1.5 * forward,
              1e-9 * forward);
}

TEST(RooflineTest, TheHottestRowsAreCached) {
  ShardingProblem problem = oneTable(1'000'000, 128, 20);
  problem.target = Target::TorchRec19;
  AccessStatistics access;
  access.batch = 65536;
  access.reuse[0] = 1;
  access.rowMass = {{0.1, 0.9}, {0.5, 1}};
  problem.tables[0].access = access;
  Shard shard = whole(problem);
  shard.tier = Tier::Dram;
  auto hostRows = [&](double cached) {
    problem.cacheLoadFactor = cached;
    return describeShard(problem, 0, {0}, shard).hostRows;
  };
  double lookups = 65536 * 20.0;
  // No cache: every distinct row. A tenth of the lookups miss; half as many
  // where the cache holds half of the way to all of them.
  EXPECT_NEAR(hostRows(0), 1e6, 1e-6);
  EXPECT_NEAR(hostRows(0.1), 0.1 * lookups, 1e-6);
  EXPECT_NEAR(hostRows(0.3), 0.05 * lookups, 1e-6);
  EXPECT_NEAR(hostRows(1), 0, 1e-6);
}

TEST(RooflineTest, EmptyDeviceCostsNothing) {
  EXPECT_EQ(computeOf(oneTable(10, 4, 1), {}).total(), 0);
}

TEST(RooflineTest, IncrementalFormEqualsTheBatch) {
  ShardingProblem problem = oneTable(5'000'000, 128, 20);
  std::vector<Shard> shards = {
      makeShard("x", "a", 0, 3'000'000, 0, 128, {0}),
      makeShard("y", "a", 3'000'000, 5'000'000, 0, 64, {0})};
  auto model = makeRooflineModel();
  const SumEmbedding *embedding = model->sumEmbedding();
  ASSERT_NE(embedding, nullptr);
  std::vector<double> sum(static_cast<size_t>(embedding->size()));
  std::vector<double> one(sum.size());
  for (const Shard &shard : shards) {
    embedding->embed(describeShard(problem, 0, {0}, shard), h200(), one);
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += one[i];
  }
  ComputeMs incremental = embedding->head(sum, 2, h200());
  ComputeMs batch = computeOf(problem, shards);
  EXPECT_DOUBLE_EQ(incremental.forwardMs, batch.forwardMs);
  EXPECT_DOUBLE_EQ(incremental.backwardMs, batch.backwardMs);
}

Traffic evenTraffic(const Topology &topology, double bytes) {
  Traffic traffic;
  traffic.topology = &topology;
  traffic.dims.assign(topology.devices.size(), 1);
  traffic.bytesOut.assign(topology.devices.size(), bytes);
  traffic.bytesIn = traffic.bytesOut;
  return traffic;
}

TEST(RooflineTest, OneNodeSendsSevenEighths) {
  Topology topology = *parseTopology("8xH200");
  std::vector<double> times = makeRooflineModel()->communicationMs(
      evenTraffic(topology, 372e6), {}, Direction::Forward);
  // 10.9 us + 7/8 of 372 MB over 372 GB/s, the ramp, and an eighth copied.
  double expected =
      0.0109 + 0.875 + 0.0333 * 875 / (875 + 40.7) + 372e6 / 8 / 951e9 * 1e3;
  EXPECT_THAT(times, testing::Each(testing::DoubleNear(expected, 1e-12)));
}

TEST(RooflineTest, LevelsWithFiguresOfTheirOwnTakeNothingMore) {
  Topology topology = *parseTopology("8xH200");
  topology.levels[0].latencyUs = 20;
  std::vector<double> times = makeRooflineModel()->communicationMs(
      evenTraffic(topology, 372e6), {}, Direction::Forward);
  EXPECT_THAT(times, testing::Each(testing::DoubleNear(0.020 + 0.875, 1e-12)));
}

TEST(RooflineTest, TheSlowerLevelDecides) {
  Topology topology = *parseTopology("2x8xA100-40GB");
  std::vector<double> times = makeRooflineModel()->communicationMs(
      evenTraffic(topology, 22e6), {}, Direction::Backward);
  // 8 of 16 peers are behind the network: 30 us + half of 22 MB over 22 GB/s,
  // the ramp, and a sixteenth copied.
  double expected =
      0.030 + 0.5 + 0.0333 * 500 / (500 + 40.7) + 22e6 / 16 / 951e9 * 1e3;
  EXPECT_THAT(times, testing::Each(testing::DoubleNear(expected, 1e-12)));
}

TEST(RooflineTest, UnequalGroupsReachDifferentNumbersOfPeers) {
  Topology topology = *parseTopology("3+1xA100-40GB");
  topology.levels[0].latencyUs = 31; // no default: nothing more
  std::vector<double> times = makeRooflineModel()->communicationMs(
      evenTraffic(topology, 22e6), {}, Direction::Forward);
  // One peer of four behind the network, against three.
  EXPECT_NEAR(times[0], 0.031 + 0.25, 1e-12);
  EXPECT_NEAR(times[3], 0.031 + 0.75, 1e-12);
}

TEST(RooflineTest, DevicesOfAHostShareItsCard) {
  Topology topology = *parseTopology("2x2xCPU@200mbit");
  Traffic traffic = evenTraffic(topology, 0);
  traffic.bytesOut = {3e6, 1e6, 2e6, 0};
  traffic.bytesIn = {1e6, 1e6, 0, 1e6};
  std::vector<double> times =
      makeRooflineModel()->communicationMs(traffic, {}, Direction::Forward);
  double latency = topology.levels[0].latencyUs * 1e-3;
  // Half of 4 MB leave the first host, half of 2 MB the second, at 25 MB/s.
  EXPECT_NEAR(times[0], latency + 80, 1e-9);
  EXPECT_NEAR(times[1], latency + 80, 1e-9);
  EXPECT_NEAR(times[2], latency + 40, 1e-9);
  EXPECT_NEAR(times[3], latency + 40, 1e-9);
}

TEST(RooflineTest, OneDeviceExchangesNothing) {
  Topology topology = *parseTopology("1xH200");
  EXPECT_THAT(makeRooflineModel()->communicationMs(evenTraffic(topology, 1e9),
                                                   {}, Direction::Forward),
              testing::ElementsAre(0));
}

TEST(RooflineTest, EarlyDevicesWaitForTheLast) {
  Topology topology = *parseTopology("2xH200");
  Traffic traffic = evenTraffic(topology, 0);
  std::array<double, 2> skews = {0, 5};
  EXPECT_THAT(
      makeRooflineModel()->communicationMs(traffic, skews, Direction::Forward),
      testing::ElementsAre(5, 0));
}

} // namespace
