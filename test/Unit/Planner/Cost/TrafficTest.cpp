//===- TrafficTest.cpp - The terms of shards beside the traffic of plans --===//
//
// Shows that what searches add up for each shard is what the plan's artifact
// sends, but for alignment, shared streams of ids and relays. That the planner
// counts what is sent is shown in Runtime/TrafficTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Planner/Traffic.h"
#include "Cost/StagedExchange.h"
#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/CostModel.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

/// On 4 devices each has 16 samples, of which 64 ids are of table a.
ShardingProblem fourDevices() { return twoTables("4xCPU@1GiB"); }

/// The sum of the terms of a device's shards.
ShardWork termsOf(const ShardingProblem &problem,
                  const std::vector<Shard> &shards, int device) {
  ShardWork sum;
  for (const Shard &shard : shards) {
    if (shard.devices != std::vector<int>{device})
      continue;
    int table = problem.tableIndex(shard.table);
    ShardWork work = describeShard(
        problem, table, featuresOfTables(problem)[static_cast<size_t>(table)],
        shard);
    sum.inputBytes += work.inputBytes;
    sum.forwardBytes += work.forwardBytes;
    sum.backwardBytes += work.backwardBytes;
  }
  return sum;
}

int64_t toDevice(const PairBytes &bytes, int device) {
  int64_t total = 0;
  for (const std::vector<int64_t> &from : bytes)
    total += from[static_cast<size_t>(device)];
  return total;
}

int64_t fromDevice(const PairBytes &bytes, int device) {
  const std::vector<int64_t> &to = bytes[static_cast<size_t>(device)];
  return std::accumulate(to.begin(), to.end(), int64_t{0});
}

void expectTermsToBeTraffic(const ShardingProblem &problem,
                            const std::vector<Shard> &shards) {
  StepTraffic traffic = planTraffic(problem, shards);
  ASSERT_EQ(traffic.exchanges.size(), 1U);
  const ExchangeTraffic &one = traffic.exchanges[0];
  for (int device = 0; device < problem.topology.deviceCount(); ++device) {
    ShardWork terms = termsOf(problem, shards, device);
    EXPECT_EQ(static_cast<double>(fromDevice(one.results, device)),
              terms.forwardBytes);
    EXPECT_EQ(static_cast<double>(toDevice(one.gradients, device)),
              terms.backwardBytes);
    auto ids = static_cast<double>(toDevice(one.ids, device));
    EXPECT_GE(ids, terms.inputBytes);
    // Three parts of a message begin at multiples of 8 bytes.
    EXPECT_LE(ids, terms.inputBytes + 4 * 3 * 7);
  }
}

TEST(TrafficTest, TermsOfShardsAreTheTrafficOfAPlan) {
  ShardingProblem problem = fourDevices();
  expectTermsToBeTraffic(problem, {makeShard("a", "a", 0, 1000, 0, 16, {2}),
                                   makeShard("b", "b", 0, 500, 0, 8, {2})});
  expectTermsToBeTraffic(problem, {makeShard("a_0", "a", 0, 1000, 0, 4, {0}),
                                   makeShard("a_1", "a", 0, 1000, 4, 16, {3}),
                                   makeShard("b_0", "b", 0, 125, 0, 8, {1}),
                                   makeShard("b_1", "b", 125, 500, 0, 8, {2})});
  problem.batch.idType = IdType::I32;
  problem.batch.wireType = WireFormat::BF16;
  problem.features[0].weighted = true;
  expectTermsToBeTraffic(problem, {makeShard("a_0", "a", 0, 250, 0, 16, {0}),
                                   makeShard("a_1", "a", 250, 1000, 0, 8, {0}),
                                   makeShard("a_2", "a", 250, 1000, 8, 16, {1}),
                                   makeShard("b", "b", 0, 500, 0, 8, {3})});
  for (WireType wire :
       {WireType(WireFormat::F32, WireFormat::BF16),
        WireType(WireFormat::F16, WireFormat::F32), WireType(WireFormat::Int8),
        WireType(WireFormat::BF16, WireFormat::Fp8)}) {
    problem.batch.wireType = wire;
    expectTermsToBeTraffic(problem,
                           {makeShard("a_0", "a", 0, 250, 0, 16, {0}),
                            makeShard("a_1", "a", 250, 1000, 0, 16, {1}),
                            makeShard("b", "b", 0, 500, 0, 8, {3})});
  }
}

TEST(TrafficTest, ShardsOfTheSameRowsOnADeviceShareTheirIds) {
  ShardingProblem problem = fourDevices();
  std::vector<Shard> shards = {makeShard("a_0", "a", 0, 1000, 0, 8, {1}),
                               makeShard("a_1", "a", 0, 1000, 8, 16, {1})};
  PairBytes ids = planTraffic(problem, shards).exchanges[0].ids;
  EXPECT_EQ(static_cast<double>(2 * toDevice(ids, 1)),
            termsOf(problem, shards, 1).inputBytes);
}

TEST(TrafficTest, BreakdownHasTheBytesOfTheArtifact) {
  ShardingProblem problem = fourDevices();
  std::vector<Shard> shards = {makeShard("a", "a", 0, 1000, 0, 16, {0}),
                               makeShard("b", "b", 0, 500, 0, 8, {1})};
  std::unique_ptr<CostModel> model = makeRooflineModel();
  CostBreakdown breakdown =
      evaluate(problem, makePlan(problem, shards), *model, {});
  // Results of 48 samples of others; device 1 has some of table a in turn.
  EXPECT_EQ(breakdown.devices[0].forwardBytes, 48 * 16 * 4 + 16 * 8 * 4);
  EXPECT_EQ(breakdown.devices[1].forwardBytes, 48 * 8 * 4 + 16 * 16 * 4);
  EXPECT_EQ(breakdown.devices[2].forwardBytes, 16 * (16 + 8) * 4);
  EXPECT_EQ(breakdown.devices[2].backwardBytes, 16 * (16 + 8) * 4);

  problem.batch.wireType = {WireFormat::F32, WireFormat::BF16};
  breakdown = evaluate(problem, makePlan(problem, shards), *model, {});
  EXPECT_EQ(breakdown.devices[0].forwardBytes, 48 * 16 * 4 + 16 * 8 * 4);
  EXPECT_EQ(breakdown.devices[0].backwardBytes, 48 * 16 * 2 + 16 * 8 * 2);
  problem.batch.wireType = {WireFormat::F16, WireFormat::F32};
  breakdown = evaluate(problem, makePlan(problem, shards), *model, {});
  EXPECT_EQ(breakdown.devices[2].forwardBytes, 16 * (16 + 8) * 2);
  EXPECT_EQ(breakdown.devices[2].backwardBytes, 16 * (16 + 8) * 4);
  // A scale for each row of each table.
  problem.batch.wireType = {WireFormat::Int8, WireFormat::Fp8};
  breakdown = evaluate(problem, makePlan(problem, shards), *model, {});
  EXPECT_EQ(breakdown.devices[0].forwardBytes, 48 * (16 + 4) + 16 * (8 + 4));
  EXPECT_EQ(breakdown.devices[2].backwardBytes, 16 * (16 + 4 + 8 + 4));
}

TEST(TrafficTest, CopiesExchangeGradientsInTheirType) {
  ShardingProblem problem = fourDevices();
  std::vector<Shard> shards = {
      makeShard("a", "a", 0, 1000, 0, 16, {0, 1, 2, 3}),
      makeShard("b", "b", 0, 500, 0, 8, {1})};
  auto bytesOf = [&](WireType wire) {
    problem.batch.wireType = wire;
    return planTraffic(problem, shards).exchanges[0].copies[0][1];
  };
  // Gradients of 16 samples.
  EXPECT_EQ(bytesOf({WireFormat::BF16, WireFormat::F32}),
            bytesOf(WireFormat::F32));
  EXPECT_EQ(bytesOf({WireFormat::F32, WireFormat::BF16}),
            bytesOf(WireFormat::F32) - 16 * 16 * 2);
  EXPECT_EQ(bytesOf({WireFormat::F32, WireFormat::Int8}),
            bytesOf(WireFormat::F32) - 16 * 16 * 4 + 16 * (16 + 4));
}

/// Table a has 16 rows on all of 4 devices: 272 sums, which each device adds up
/// 68 of.
ShardingProblem copiedTable(const std::string &topology,
                            std::vector<Shard> &shards) {
  ShardingProblem problem = twoTables(topology);
  problem.tables[0].rows = 16;
  shards = {makeShard("a", "a", 0, 16, 0, 16, {0, 1, 2, 3}),
            makeShard("b", "b", 0, 500, 0, 8, {1})};
  return problem;
}

TEST(TrafficTest, CopiesOfFewRowsExchangeSums) {
  std::vector<Shard> shards;
  ShardingProblem problem = copiedTable("4xCPU@1GiB", shards);
  PairBytes bytes = planTraffic(problem, shards).exchanges[0].copies;
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to)
      EXPECT_EQ(bytes[from][to], (68 + 68) * 4);
  ShardWork work = describeShard(problem, 0, {0}, shards[0]);
  EXPECT_EQ(work.rowSumBytes, 2 * 272 * 4);
  EXPECT_EQ(work.backwardBytes, work.rowSumBytes);
  EXPECT_EQ(work.updateLookups, work.lookups + work.updateUniqueRows);
  // Cast, and as bf16 where rows of gradients have scales.
  for (WireFormat format :
       {WireFormat::F16, WireFormat::Int8, WireFormat::Fp8}) {
    problem.batch.wireType = {WireFormat::F32, format};
    EXPECT_EQ(planTraffic(problem, shards).exchanges[0].copies,
              PairBytes(4, std::vector<int64_t>(4, (68 + 68) * 2)));
  }
}

// The sums of each rank go with the gradients, the totals beside the updates of
// other tables.
TEST(TrafficTest, TotalsOfRowsGoAfterSums) {
  std::vector<Shard> shards;
  ShardingProblem problem = copiedTable("4xCPU@1GiB", shards);
  std::vector<DeviceLoad> loads(4);
  for (DeviceLoad &load : loads) {
    load.backwardBytes = 5000;
    load.rowSumBytes = 2 * 272 * 4;
    load.lateSumBytes = 272 * 4;
  }
  std::vector<Traffic> stages =
      exchangeStages(problem.topology, loads, {}, Direction::Backward);
  ASSERT_EQ(stages.size(), 1U);
  EXPECT_EQ(stages[0].bytesIn, std::vector<double>(4, 5000 - 272 * 4));
  std::vector<Traffic> sums = sumStages(problem.topology, loads);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].bytesIn, std::vector<double>(4, 272 * 4));
}

double stepMs(std::span<const DeviceLoad> loads) {
  return composeCost(*parseTopology("4xCPU@1GiB"), loads, *makeRooflineModel(),
                     {})
      .costMs;
}

// Links are busy with the gradients of one device until it has all of them.
TEST(TrafficTest, SumsWaitForTheGradientsOfAll) {
  auto costMs = [&](double lateBytes, double copyBytes) {
    std::vector<DeviceLoad> loads(4);
    for (DeviceLoad &load : loads) {
      load.backwardBytes = load.rowSumBytes = 2 * lateBytes;
      load.lateSumBytes = lateBytes;
    }
    loads[3].backwardBytes += 4e8; // gradients
    for (DeviceLoad &load : loads) {
      load.outsideCopySumBytes = copyBytes;
      load.backwardBytes += copyBytes;
    }
    return stepMs(loads);
  };
  double gradientsMs = costMs(0, 0);
  double latencyMs = costMs(1, 0) - gradientsMs;
  // Three of four parts of 10 MB at 8 GB/s: with the gradients, and late.
  double totalsMs = costMs(1e7, 0) - gradientsMs - latencyMs;
  EXPECT_NEAR(totalsMs, 2 * 0.75 * 1e7 / 8e6, 1e-3);
  // All of 10 MB, since sums are for other devices alone, and a latency.
  EXPECT_NEAR(costMs(0, 1e7) - gradientsMs, 1e7 / 8e6 + latencyMs, 1e-3);
}

TEST(TrafficTest, UpdatesGoOnBesideTotals) {
  auto costMs = [&](double updateMs, double lateShare) {
    std::vector<DeviceLoad> loads(4);
    for (DeviceLoad &load : loads) {
      load.backwardBytes = load.rowSumBytes = 2e6;
      load.lateSumBytes = 1e6;
      load.compute.backwardMs = updateMs;
      load.updateValues = 8;
      load.lateUpdateValues = 8 * lateShare;
    }
    return stepMs(loads);
  };
  double exchangesMs = costMs(0, 0);
  EXPECT_DOUBLE_EQ(costMs(0.25 * exchangesMs, 0), exchangesMs);
  EXPECT_DOUBLE_EQ(costMs(0.25 * exchangesMs, 0.5), 1.125 * exchangesMs);
  EXPECT_DOUBLE_EQ(costMs(0.25 * exchangesMs, 1), 1.25 * exchangesMs);
  // Longer than the totals travel, which is half of all.
  EXPECT_DOUBLE_EQ(costMs(2 * exchangesMs, 0), 2.5 * exchangesMs);
}

// TorchRec exchanges gradients first.
TEST(TrafficTest, TorchRecReducesCopiesBesideUpdates) {
  std::vector<Shard> shards;
  ShardingProblem problem = copiedTable("4xCPU@1GiB", shards);
  problem.target = Target::TorchRec19;
  ShardWork work = describeShard(problem, 0, {0}, shards[0]);
  EXPECT_EQ(work.lateSumBytes, work.rowSumBytes);
  std::vector<DeviceLoad> loads(4);
  for (DeviceLoad &load : loads)
    load.backwardBytes = load.rowSumBytes = load.lateSumBytes = 2 * 272 * 4;
  EXPECT_EQ(exchangeStages(problem.topology, loads, {}, Direction::Backward)[0]
                .bytesIn,
            std::vector<double>(4, 0));
  std::vector<Traffic> sums = sumStages(problem.topology, loads);
  ASSERT_EQ(sums.size(), 2U);
  for (const Traffic &stage : sums)
    EXPECT_EQ(stage.bytesIn, std::vector<double>(4, 272 * 4));
}

TEST(TrafficTest, SumsGoWithinGroupsAndThenBetweenThem) {
  std::vector<Shard> shards;
  ShardingProblem problem = copiedTable("2x2xCPU@1GiB", shards);
  PairBytes bytes = planTraffic(problem, shards).exchanges[0].copies;
  // Within a group 136 sums and totals of 136; between groups 68 and 68.
  EXPECT_EQ(bytes[0],
            (std::vector<int64_t>{(136 + 136 + 68 + 68) * 4, (136 + 136) * 4,
                                  (68 + 68) * 4, 0}));
  EXPECT_EQ(bytes[3], (std::vector<int64_t>{0, (68 + 68) * 4, (136 + 136) * 4,
                                            (136 + 136 + 68 + 68) * 4}));
  // And in the price: within groups with the gradients, then late.
  std::vector<DeviceLoad> loads(4);
  for (DeviceLoad &load : loads) {
    load.backwardBytes = load.rowSumBytes = 2 * 272 * 4;
    load.lateSumBytes = 272 * 4;
  }
  EXPECT_EQ(exchangeStages(problem.topology, loads, {}, Direction::Backward)[0]
                .insideIn,
            std::vector<double>(4, 272 * 4));
  std::vector<Traffic> sums = sumStages(problem.topology, loads);
  ASSERT_EQ(sums.size(), 3U);
  const std::vector<double> none(4);
  for (size_t stage : {0, 1}) {
    EXPECT_EQ(sums[stage].acrossIn, std::vector<double>(4, 136 * 4));
    EXPECT_EQ(sums[stage].insideIn, none);
  }
  EXPECT_EQ(sums[2].insideIn, std::vector<double>(4, 272 * 4));
  EXPECT_EQ(sums[2].acrossIn, none);
}

TEST(TrafficTest, RelaysSendEachWayInItsType) {
  ShardingProblem problem = twoTables("2x2xCPU@1GiB");
  std::vector<Shard> shards = {makeShard("a_0", "a", 0, 500, 0, 16, {0}),
                               makeShard("a_1", "a", 500, 1000, 0, 16, {1}),
                               makeShard("b", "b", 0, 500, 0, 8, {3})};
  problem.batch.wireType = {WireFormat::F32, WireFormat::BF16};
  ExchangeTraffic one = planTraffic(problem, shards).exchanges[0];
  // Device 0 adds up the sums of its 16 samples and of those of device 2, and
  // hands the gradients to device 1.
  EXPECT_EQ(one.results[1][0], 2 * 16 * 16 * 4);
  EXPECT_EQ(one.relayedResults[0][2], 16 * 16 * 4);
  EXPECT_EQ(one.gradients[2][0], 16 * 16 * 2);
  EXPECT_EQ(one.relayedGradients[0][1], 2 * 16 * 16 * 2);
}

// Devices 2 and 3 have columns of the same rows of a, device 1 the other rows.
// 16 samples a device: 64 bytes of lengths, 64 ids of 4 bytes by halves.
TEST(TrafficTest, IdsReachAGroupOnce) {
  ShardingProblem problem = twoTables("2x2xCPU@1GiB");
  std::vector<Shard> shards = {makeShard("a_0", "a", 0, 500, 0, 16, {1}),
                               makeShard("a_1", "a", 500, 1000, 0, 8, {2}),
                               makeShard("a_2", "a", 500, 1000, 8, 16, {3})};
  ExchangeTraffic one = planTraffic(problem, shards).exchanges[0];
  constexpr int64_t kHalf = 16 * 4 + 32 * 4;
  // To the relays of both groups, these with its own index.
  EXPECT_EQ(one.ids[0], (std::vector<int64_t>{kHalf, 0, kHalf, 0}));
  EXPECT_EQ(one.ids[3], (std::vector<int64_t>{0, kHalf, 0, kHalf}));
  // Those of two ranks each.
  EXPECT_EQ(one.relayedIds[0], (std::vector<int64_t>{0, 2 * kHalf, 0, 0}));
  EXPECT_EQ(one.relayedIds[2],
            (std::vector<int64_t>{0, 0, 2 * kHalf, 2 * kHalf}));
}

// The same two column shards in one group and in two.
TEST(TrafficTest, SharedIdsAndNormsStayInAGroup) {
  ShardingProblem problem = twoTables("2x2xCPU@1GiB");
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  std::unique_ptr<CostModel> model = makeRooflineModel();
  auto loadsWith = [&](int second) {
    return planLoads(
        problem,
        makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 8, {0}),
                           makeShard("a_1", "a", 0, 1000, 8, 16, {second}),
                           makeShard("b", "b", 0, 500, 0, 8, {3})}),
        *model);
  };
  std::vector<DeviceLoad> together = loadsWith(1), apart = loadsWith(2);
  EXPECT_GT(together[0].inputBytes, 0);
  EXPECT_EQ(together[0].groupInputBytes, together[0].inputBytes);
  EXPECT_EQ(together[1].groupInputBytes, 0);
  EXPECT_EQ(apart[2].groupInputBytes, apart[2].inputBytes);
  ShardWork work = describeShard(problem, 0, featuresOfTables(problem)[0],
                                 makeShard("a", "a", 0, 1000, 0, 8, {0}));
  EXPECT_GT(work.normBytes, 0);
  EXPECT_EQ(together[0].insideNormBytes, work.normBytes);
  EXPECT_EQ(together[1].insideNormBytes, work.normBytes);
  EXPECT_EQ(apart[0].insideNormBytes, 0);
  EXPECT_EQ(apart[2].backwardBytes, together[1].backwardBytes);
}

} // namespace
