//===- CopiesTest.cpp - Shards with copies on some devices ----------------===//
//
// Shows that copies are priced by what a step of the plan's artifact sends,
// that their readers' results stay in their group, and that the memory planned
// for them is enough.
//
//===----------------------------------------------------------------------===//

#include "Cost/StagedExchange.h"
#include "PlanMemory/AverageMemory.h"
#include "Support.h"
#include "Units/MemoryLowerBound.h"
#include "Units/UnitOperations.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Traffic.h"

#include <gtest/gtest.h>

#include <random>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

/// Table a has a copy in each of two groups of four, b one on device 7.
std::vector<Shard> copyPerGroup() {
  return {makeShard("a", "a", 0, 1000, 0, 16, {1, 6}),
          makeShard("b", "b", 0, 500, 0, 8, {7})};
}

int64_t acrossGroups(const PairBytes &bytes, size_t device) {
  int64_t across = 0;
  for (size_t to = 0; to < bytes.size(); ++to)
    across += to / 4 == device / 4 ? 0 : bytes[device][to];
  return across;
}

std::vector<DeviceLoad> loadsOf(const ShardingProblem &problem,
                                const std::vector<Shard> &shards) {
  return planLoads(problem, makePlan(problem, shards), *makeRooflineModel());
}

TEST(CopiesTest, ShareTheBatch) {
  ShardingProblem problem = twoTables("2x4xCPU@1GiB");
  std::vector<Shard> shards = copyPerGroup();
  const std::vector<int> features = featuresOfTables(problem)[0];
  Shard alone = shards[0];
  alone.devices = {1};
  ShardWork whole = describeShard(problem, 0, features, alone, false);
  std::vector<ShardWork> copies =
      describeCopies(problem, 0, features, shards[0], false);
  ASSERT_EQ(copies.size(), 2U);
  for (const ShardWork &copy : copies) {
    EXPECT_EQ(copy.lookups, whole.lookups / 2);
    EXPECT_EQ(copy.outputRows, whole.outputRows / 2);
    EXPECT_EQ(copy.forwardBytes, whole.forwardBytes / 2);
    EXPECT_EQ(copy.insideForwardBytes, copy.forwardBytes);
    EXPECT_EQ(copy.groupInputBytes, 0);
    EXPECT_LT(copy.uniqueRows, whole.uniqueRows);
    EXPECT_GT(copy.uniqueRows, whole.uniqueRows / 2);
    EXPECT_NEAR(copy.updateLookups, copy.lookups + 2 * copy.uniqueRows, 1e-6);
    EXPECT_EQ(copy.insideCopies, 0);
    EXPECT_EQ(copy.backwardBytes, copy.insideGradientBytes + copy.copySumBytes);
  }
  // Two of three copies serve one device each, the third one two.
  problem = twoTables("4xCPU@1GiB");
  shards[0].devices = {3, 0, 1};
  copies = describeCopies(problem, 0, features, shards[0], false);
  EXPECT_EQ(copies[0].lookups, whole.lookups / 4);
  EXPECT_EQ(copies[1].lookups + copies[2].lookups, whole.lookups * 3 / 4);
}

TEST(CopiesTest, ArePricedByWhatTravels) {
  for (WireFormat format : {WireFormat::F32, WireFormat::Int8}) {
    ShardingProblem problem = twoTables("2x4xCPU@1GiB");
    problem.batch.wireType.gradients = format;
    std::vector<Shard> shards = copyPerGroup();
    StepTraffic traffic = planTraffic(problem, shards);
    std::vector<DeviceLoad> loads = loadsOf(problem, shards);
    const ExchangeTraffic &one = traffic.exchanges[0];
    // Device 1 has nothing else.
    EXPECT_EQ(acrossGroups(one.results, 1), 0);
    EXPECT_EQ(acrossGroups(one.gradients, 1),
              acrossGroups(one.gradients, 2)); // for table b alone
    EXPECT_GT(traffic.copySums[1][6], 0);
    EXPECT_EQ(traffic.copySums[1][7], 0);
    EXPECT_NEAR(loads[1].outsideCopySumBytes,
                static_cast<double>(traffic.copySums[1][6]), 20);
    EXPECT_EQ(loads[1].insideCopySumBytes, 0);
    EXPECT_EQ(loads[7].outsideCopySumBytes, 0);
    std::vector<Traffic> stages =
        exchangeStages(problem.topology, loads, {}, Direction::Backward);
    ASSERT_EQ(stages.size(), 2U);
    std::optional<Traffic> sums = copySumStage(problem.topology, loads);
    ASSERT_TRUE(sums);
    // Of what is spread evenly over two groups, half stays in its own.
    EXPECT_EQ(sums->acrossOut[1], 2 * loads[1].outsideCopySumBytes);
    EXPECT_EQ(sums->acrossOut[7], 0);
    EXPECT_EQ(stages[0].insideIn[1], loads[1].insideGradientBytes);
    EXPECT_EQ(stages[0].bytesIn[1], 0);
    std::vector<Traffic> ids =
        exchangeStages(problem.topology, loads, {}, Direction::Input);
    ASSERT_EQ(ids.size(), 2U);
    EXPECT_EQ(ids[0].acrossIn[1], 0);
    EXPECT_GT(ids[0].acrossIn[7], 0); // of table b
  }
}

// One without copies sends half of its results to the other group, as its
// devices are half of all.
TEST(CopiesTest, SaveWhatTheyKeepInTheirGroup) {
  ShardingProblem problem = twoTables("2x4xCPU@1GiB");
  std::vector<Shard> shards = copyPerGroup();
  auto resultsAcross = [&] {
    StepTraffic traffic = planTraffic(problem, shards);
    int64_t across = 0;
    for (size_t device = 0; device < 8; ++device)
      across += acrossGroups(traffic.exchanges[0].results, device);
    return across;
  };
  int64_t copied = resultsAcross();
  shards[0].devices = {1};
  int64_t single = resultsAcross();
  auto batch = static_cast<int64_t>(problem.batch.globalSize);
  EXPECT_EQ(single - copied, batch / 2 * 16 * 4);
}

// Column shards with a copy in each node send norms inside alone; with both
// copies of one in a node, those of the other node's copy cross.
TEST(CopiesTest, NormsComeFromTheNearestCopy) {
  ShardingProblem problem = twoTables("2x2xCPU@1GiB");
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  std::unique_ptr<CostModel> model = makeRooflineModel();
  auto insideNorms = [&](std::vector<int> first, std::vector<int> second) {
    std::vector<double> inside;
    for (const DeviceLoad &load : planLoads(
             problem,
             makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 8, first),
                                makeShard("a_1", "a", 0, 1000, 8, 16, second),
                                makeShard("b", "b", 0, 500, 0, 8, {0})}),
             *model))
      inside.push_back(load.insideNormBytes);
    return inside;
  };
  std::vector<double> nodes = insideNorms({0, 2}, {1, 3});
  EXPECT_GT(nodes[0], 0);
  EXPECT_EQ(nodes, std::vector<double>(4, nodes[0]));
  // Of the copies on 0 and 1 both get norms of 2 or 3, which do of 0 or 1.
  EXPECT_EQ(insideNorms({0, 1}, {2, 3}), std::vector<double>(4, 0));
  // Device 2 alone has no copy of the other columns in its node.
  EXPECT_EQ(insideNorms({0, 2}, {1}),
            (std::vector<double>{nodes[0], nodes[0], 0, 0}));
}

// Averages are priced by what a mean step of the artifact sends; gradients of
// copies that drift stay in their group, and nothing is sent for an update.
TEST(CopiesTest, AveragesArePricedByWhatTravels) {
  for (OptimizerKind kind :
       {OptimizerKind::SGD, OptimizerKind::Adagrad, OptimizerKind::Adam})
    for (int64_t every : {1, 50}) {
      ShardingProblem problem = twoTables("2x4xCPU@1GiB");
      problem.tables[0].optimizer.kind = kind;
      std::vector<Shard> shards = copyPerGroup();
      shards[0].syncEvery = every;
      StepTraffic traffic = planTraffic(problem, shards);
      std::vector<DeviceLoad> loads = loadsOf(problem, shards);
      int64_t states = propertiesOf(kind).states.count();
      // Half of the rows to the other, the average of the other half back.
      EXPECT_EQ(traffic.averages[1][6], 1000 * 16 * 4 * (1 + states) / every);
      EXPECT_EQ(traffic.averages[1][7], 0);
      EXPECT_EQ(traffic.copySums[1][6], 0);
      EXPECT_NEAR(loads[1].outsideAverageBytes,
                  static_cast<double>(traffic.averages[1][6]), 20);
      EXPECT_EQ(loads[1].insideAverageBytes, 0);
      EXPECT_EQ(loads[1].outsideCopySumBytes, 0);
      EXPECT_EQ(loads[1].backwardBytes, loads[1].insideGradientBytes);
      EXPECT_EQ(loads[7].outsideAverageBytes, 0);
      double perStep = 0;
      std::optional<Traffic> stage =
          averageStage(problem.topology, loads, perStep);
      ASSERT_TRUE(stage);
      // Two exchanges of half the bytes every so many steps; of what is spread
      // over two groups, half stays.
      EXPECT_NEAR(perStep * stage->acrossOut[1],
                  2 * loads[1].outsideAverageBytes, 1e-6);
      EXPECT_DOUBLE_EQ(perStep, 2.0 / static_cast<double>(every));
    }
}

// A search adds forms and takes them away: what is left costs as much as if
// they had never been there.
TEST(CopiesTest, LoadsForgetAveragesOfShardsThatLeave) {
  const Topology topology = *parseTopology("2x2xCPU@1GiB");
  std::mt19937 random(5);
  auto below = [&](uint32_t count) { return random() % count; };
  auto perStepOf = [&](const std::vector<DeviceLoad> &loads) {
    double perStep = 0;
    std::optional<Traffic> stage = averageStage(topology, loads, perStep);
    EXPECT_EQ(stage.has_value(), perStep > 0);
    return perStep;
  };
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<ShardWork> works(1 + below(6));
    std::vector<double> signs;
    std::vector<DeviceLoad> kept(4);
    double most = 0;
    for (ShardWork &work : works) {
      if (below(3) > 0)
        work.averagesPerStep = 1.0 / (1 + below(2000));
      work.averageBytes = work.averagesPerStep > 0 ? 1 + below(1 << 20) : 0;
      most = std::max(most, work.averagesPerStep);
      addLoads(kept[0], loadOf(work), 1);
      addLoads(kept[2], loadOf(work), 0.25);
    }
    double all = perStepOf(kept);
    EXPECT_LE(all, 2 * most * (1 + 1e-9));
    EXPECT_EQ(all > 0, most > 0);
    size_t left = below(static_cast<uint32_t>(works.size()));
    std::vector<DeviceLoad> fresh(4);
    for (size_t i = 0; i < works.size(); ++i)
      for (auto [device, share] : {std::pair(0, 1.0), {2, 0.25}})
        addLoads(i < left ? fresh[device] : kept[device], loadOf(works[i]),
                 i < left ? share : -share);
    double expected = perStepOf(fresh);
    EXPECT_NEAR(perStepOf(kept), expected, 1e-9);
    EXPECT_EQ(perStepOf(kept) > 0, expected > 0);
  }
}

TEST(CopiesTest, OnAllDevicesDriftWithoutExchangesButAverages) {
  ShardingProblem problem = twoTables("2x2xCPU@1GiB");
  std::vector<Shard> shards = {
      makeShard("a", "a", 0, 1000, 0, 16, {0, 1, 2, 3}),
      makeShard("b", "b", 0, 500, 0, 8, {0})};
  auto costs = [&](int64_t every) {
    shards[0].syncEvery = every;
    return evaluate(problem, makePlan(problem, shards), *makeRooflineModel(),
                    {});
  };
  costs(10);
  for (const DeviceLoad &load : loadsOf(problem, shards))
    EXPECT_GT(load.outsideAverageBytes, 0);
  DeviceLoad third = loadsOf(problem, shards)[3];
  EXPECT_EQ(third.inputBytes + third.forwardBytes + third.backwardBytes, 0);
  ExchangeTraffic sent = planTraffic(problem, shards).exchanges[0];
  EXPECT_EQ(sent.results[3],
            std::vector<int64_t>({0, 0, 0, sent.results[3][3]}));
  // What an average takes falls with the steps between two.
  double often = costs(1).backwardCommunicationMs,
         seldom = costs(100).backwardCommunicationMs,
         never = costs(1'000'000'000).backwardCommunicationMs;
  EXPECT_NEAR((seldom - never) * 100, often - never, (often - never) * 0.01);
  EXPECT_GT(often, seldom);
}

// What searches leave free is enough for any copies of tables that may drift.
TEST(CopiesTest, SearchesLeaveRoomForAverages) {
  for (int64_t rows : {3, 1000, 3'000'000})
    for (OptimizerKind kind : {OptimizerKind::SGD, OptimizerKind::Adam})
      for (ElementType type : {ElementType::F32, ElementType::F16}) {
        ShardingProblem problem = twoTables("4xCPU@1GiB");
        EXPECT_EQ(roomForAverages(problem), 0);
        problem.tables[0].rows = rows;
        problem.tables[0].optimizer.kind = kind;
        problem.tables[0].elementType = type;
        std::vector<Shard> shards = {
            makeShard("a_0", "a", 0, 1, 0, 16, {0, 1, 2}),
            makeShard("a_1", "a", 1, rows, 0, 4, {0, 2, 3}),
            makeShard("a_2", "a", 1, rows, 4, 16, {0, 1, 3})};
        for (Shard &shard : shards)
          shard.syncEvery = 5;
        shards.push_back(makeShard("b", "b", 0, 500, 0, 8, {0}));
        problem.constraints.tables.push_back({.table = 0, .syncEvery = 5});
        int64_t room = roomForAverages(problem);
        std::vector<MemoryTerms> used(4);
        addAverageMessages(problem, shards, used);
        for (const MemoryTerms &terms : used)
          EXPECT_LE(terms.backwardBytes, room);
        EXPECT_GT(used[0].backwardBytes, 0);
        // Shards written by hand alone.
        std::swap(problem.constraints.fixedShards, shards);
        problem.constraints.tables.clear();
        EXPECT_EQ(roomForAverages(problem), room);
      }
}

TEST(CopiesTest, LeastMemoryIsThatOfCopiesThatDrift) {
  ShardingProblem problem = twoTables("4xCPU@1GiB");
  problem.constraints.tables.push_back({.table = 0, .syncEvery = 5});
  std::unique_ptr<CostModel> model = makeRooflineModel();
  SearchOptions options;
  SearchContext context(problem, *model, options);
  Shard whole = makeShard("a", "a", 0, 1000, 0, 16, {0, 1, 2, 3});
  UnitPtr unit = makeUnit(context, {whole}, Unit::kEverywhere);
  auto bytes = [&] {
    return scaled(shardMemory(problem, problem.tables[0], context.featuresOf(0),
                              whole),
                  4)
        .peakBytes();
  };
  EXPECT_NE(leastOf(context, *unit).peakBytes(), bytes());
  whole.syncEvery = 5;
  EXPECT_EQ(leastOf(context, *unit).peakBytes(), bytes());
}

TEST(CopiesTest, PlannedMemoryIsEnough) {
  for (const char *topology : {"4xCPU@1GiB", "2x4xCPU@1GiB", "2x4xH200"})
    for (WireFormat format : {WireFormat::F32, WireFormat::BF16})
      for (auto [norms, drift] :
           {std::pair(false, 0), std::pair(true, 0), std::pair(false, 1)}) {
        ShardingProblem problem = twoTables(topology);
        problem.batch.inputCopies = 1;
        problem.batch.wireType = {format, format};
        if (norms)
          problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
        std::vector<Shard> shards = {
            makeShard("a_0", "a", 0, 1000, 0, 8, {0, 2}),
            makeShard("a_1", "a", 0, 1000, 8, 16, {1, 3}),
            makeShard("b", "b", 0, 500, 0, 8, {0, 1, 3})};
        for (Shard &shard : shards)
          shard.syncEvery = drift;
        std::vector<BufferBytes> exact = planBuffers(problem, shards);
        MemoryReport sums = planMemory(problem, shards);
        for (size_t device = 0; device < exact.size(); ++device) {
          const MemoryTerms &terms = sums.devices[device];
          EXPECT_GE(terms.idsBytes +
                        std::max(terms.forwardBytes, terms.backwardBytes),
                    exact[device].idBytes() +
                        std::max(exact[device].forwardBytes(),
                                 exact[device].backwardBytes()))
              << topology << " device " << device;
        }
      }
}

} // namespace
