//===- ObjectiveTest.cpp - Sums of both objectives, by hand ---------------===//

#include "neuroshard/Planner/Objective.h"
#include "Searches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Communication takes 1 ms per dim forward, 2 ms per dim backward, plus half
/// of the wait for the last; input 1 ms per byte in.
class ToyModel : public SumModel {
public:
  ToyModel()
      : SumModel([](const ShardWork &shard) {
          return ComputeMs{static_cast<double>(shard.width), shard.pooling};
        }) {}
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> skews,
                                      Direction direction) const override {
    std::vector<double> times;
    double last =
        skews.empty() ? 0 : *std::max_element(skews.begin(), skews.end());
    for (size_t i = 0; i < traffic.dims.size(); ++i) {
      double ms = direction == Direction::Input     ? traffic.bytesIn[i]
                  : direction == Direction::Forward ? traffic.dims[i]
                                                    : 2 * traffic.dims[i];
      times.push_back(ms + (skews.empty() ? 0 : (last - skews[i]) / 2));
    }
    return times;
  }
};

/// Device 0 slow forward, device 1 slow backward.
std::vector<DeviceLoad> loads() {
  return {{{5, 1}, 3, 10, 0, 0}, {{2, 7}, 4, 30, 0, 0}};
}

/// 1, 2 and 4 ms for an exchange of ids, results and gradients, whatever it
/// has.
class LatencyModel : public ToyModel {
public:
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double>,
                                      Direction direction) const override {
    double ms = direction == Direction::Input     ? 1
                : direction == Direction::Forward ? 2
                                                  : 4;
    return std::vector<double>(traffic.dims.size(), ms);
  }
};

// TorchRec has an exchange for each sharding type.
TEST(ObjectiveTest, EachFormTakesAnExchangeOfItsOwn) {
  ShardingProblem problem;
  problem.batch.globalSize = 64;
  problem.topology = *parseTopology("2xCPU@1GiB");
  for (const char *name : {"a", "b", "c"})
    addTable(problem, makeTable(name, 1000, 16), 1);
  ShardingPlan plan;
  plan.deviceCount = 2;
  auto exchangesMs = [&](std::vector<Shard> shards) {
    plan.shards = std::move(shards);
    CostBreakdown cost = evaluate(problem, plan, LatencyModel(), {});
    return cost.inputMs + cost.exposedForwardCommunicationMs +
           cost.backwardCommunicationMs;
  };
  Shard a = makeShard("a", "a", 0, 1000, 0, 16, {0});
  Shard c = makeShard("c", "c", 0, 1000, 0, 16, {1});
  std::vector<Shard> whole = {a, makeShard("b", "b", 0, 1000, 0, 16, {1}), c};
  std::vector<Shard> byColumns = {a, makeShard("b0", "b", 0, 1000, 0, 8, {0}),
                                  makeShard("b1", "b", 0, 1000, 8, 16, {1}), c};
  std::vector<Shard> byBoth = byColumns;
  byBoth.back() = makeShard("c0", "c", 0, 500, 0, 16, {0});
  byBoth.push_back(makeShard("c1", "c", 500, 1000, 0, 16, {1}));
  for (const auto &shards : {whole, byColumns, byBoth})
    EXPECT_EQ(exchangesMs(shards), exchangesMs(whole));
  problem.target = Target::TorchRec19;
  EXPECT_EQ(exchangesMs(byColumns) - exchangesMs(whole), 1 + 2 + 4);
  EXPECT_EQ(exchangesMs(byBoth), 3 * (1 + 2 + 4));
}

TEST(ObjectiveTest, StepAddsTheMaximaOfEachPhase) {
  ToyModel model;
  Topology topology = *parseTopology("2xCPU");
  ObjectiveOptions options;
  options.denseBottomMs = 1.5;
  options.denseRestMs = 10;
  CostBreakdown cost = composeCost(topology, loads(), model, options);
  EXPECT_DOUBLE_EQ(cost.inputMs, 30);
  EXPECT_DOUBLE_EQ(cost.maxForwardMs, 5);
  EXPECT_DOUBLE_EQ(cost.exposedForwardCommunicationMs, 4 - 1.5);
  EXPECT_DOUBLE_EQ(cost.denseMs, 11.5);
  EXPECT_DOUBLE_EQ(cost.backwardCommunicationMs, 8);
  EXPECT_DOUBLE_EQ(cost.maxBackwardMs, 7);
  EXPECT_DOUBLE_EQ(cost.costMs, 30 + 5 + 2.5 + 11.5 + 8 + 7);
}

TEST(ObjectiveTest, PipelinedInputHidesBehindDenseWorkAndUpdates) {
  ToyModel model;
  Topology topology = *parseTopology("2xCPU");
  ObjectiveOptions options;
  options.pipelineDepth = 2;
  options.denseBottomMs = 1.5;
  options.denseRestMs = 4;
  // 4 + 7 of the 30 ms are hidden.
  CostBreakdown cost = composeCost(topology, loads(), model, options);
  EXPECT_DOUBLE_EQ(cost.inputMs, 19);
  EXPECT_DOUBLE_EQ(cost.costMs, 19 + 5 + 2.5 + 5.5 + 8 + 7);
  options.denseRestMs = 40;
  EXPECT_DOUBLE_EQ(composeCost(topology, loads(), model, options).inputMs, 0);
}

/// Rows of 256 bytes from host memory to device 0, and of 272 bytes from the
/// disk of both.
std::vector<DeviceLoad> fetchingLoads() {
  std::vector<DeviceLoad> all = loads();
  all[0].fetch = fetchOf(Tier::Dram, 1e6, 256, StepMode::Training);
  addFetches(all[0].fetch, fetchOf(Tier::Ssd, 1000, 272, StepMode::Training),
             1);
  all[1].fetch = fetchOf(Tier::Ssd, 2000, 272, StepMode::Training);
  return all;
}

TEST(ObjectiveTest, RecordsMoveInBlocksOfTheDisk) {
  // 272 bytes begin at multiples of 16: 256 places in a block, in 16 of which a
  // row reaches into the next one.
  FetchLoad one = fetchOf(Tier::Ssd, 1, 272, StepMode::Training);
  EXPECT_EQ(one.diskTransfers, 3); // read; read and written back
  EXPECT_EQ(one.diskBytes, 3 * (4096 + 256));
  EXPECT_EQ(fetchOf(Tier::Ssd, 1, 512, StepMode::Training).diskBytes, 3 * 4096);
  FetchLoad whole = fetchOf(Tier::Ssd, 1, 8192, StepMode::Training);
  EXPECT_EQ(whole.diskTransfers, 2);
  EXPECT_EQ(whole.diskBytes, 2 * 8192);
  EXPECT_EQ(fetchOf(Tier::Dram, 3, 272, StepMode::Training),
            (FetchLoad{3, 3 * 272, 3 * 272, 0, 0}));
}

TEST(ObjectiveTest, FetchesComeBetweenIdsAndLookups) {
  Topology topology = *parseTopology("2xH100");
  topology.hosts[0].disk = {0, 100e3, 10};
  CostBreakdown before = composeCost(topology, loads(), ToyModel(), {});
  CostBreakdown cost = composeCost(topology, fetchingLoads(), ToyModel(), {});
  // 256 MB at 50 GB/s, and 9,000 transfers of one disk.
  EXPECT_DOUBLE_EQ(cost.devices[0].fetchMs, 5.12 + 90);
  EXPECT_DOUBLE_EQ(cost.devices[1].fetchMs, 90);
  EXPECT_DOUBLE_EQ(cost.fetchMs, 95.12);
  EXPECT_DOUBLE_EQ(cost.costMs, before.costMs + 95.12);
  // Its bandwidth binds: 9,000 x 4,352 bytes.
  topology.hosts[0].disk = {0, 1e6, 0.1};
  cost = composeCost(topology, fetchingLoads(), ToyModel(), {});
  EXPECT_DOUBLE_EQ(cost.devices[1].fetchMs, 9000 * 4352 / 0.1 / 1e6);
  // Each host has its own.
  topology = *parseTopology("2x1xH100");
  for (Host &host : topology.hosts)
    host.disk = {0, 100e3, 10};
  cost = composeCost(topology, fetchingLoads(), ToyModel(), {});
  EXPECT_DOUBLE_EQ(cost.devices[0].fetchMs, 5.12 + 30);
  EXPECT_DOUBLE_EQ(cost.devices[1].fetchMs, 60);
}

TEST(ObjectiveTest, FetchesAheadHideBehindGradientsAndUpdates) {
  Topology topology = *parseTopology("2xH100");
  topology.hosts[0].disk = {0, 100e3, 10};
  ObjectiveOptions options;
  options.pipelineDepth = 2;
  options.denseRestMs = 1000; // hides none
  // Gradients take 8 ms, updates 7.
  CostBreakdown cost =
      composeCost(topology, fetchingLoads(), ToyModel(), options);
  EXPECT_DOUBLE_EQ(cost.fetchMs, 95.12 - 15);
  EXPECT_DOUBLE_EQ(cost.devices[0].fetchMs, 95.12);
  EXPECT_DOUBLE_EQ(cost.costMs,
                   cost.inputMs + cost.fetchMs + cost.maxForwardMs +
                       cost.exposedForwardCommunicationMs + cost.denseMs +
                       cost.backwardCommunicationMs + cost.maxBackwardMs);
  topology.hosts[0].disk.readsPerSecond = 1e6;
  cost = composeCost(topology, fetchingLoads(), ToyModel(), options);
  EXPECT_DOUBLE_EQ(cost.fetchMs, 0);
  // One device brings rows when its step starts.
  topology = *parseTopology("1xH100");
  topology.hosts[0].disk = {0, 100e3, 10};
  std::vector<DeviceLoad> one = {fetchingLoads()[1]};
  EXPECT_DOUBLE_EQ(composeCost(topology, one, ToyModel(), options).fetchMs, 60);
}

TEST(ObjectiveTest, RowsThatCachesLackAreFetched) {
  ShardingProblem problem = twoTables("2xH100");
  // 64 x 4 of 1,000 rows, all alike: 226 distinct ones, of which a cache of
  // half the rows has half.
  Shard shard = makeShard("a", "a", 0, 1000, 0, 16, {0});
  EXPECT_EQ(describeShard(problem, 0, {0}, shard).fetch, FetchLoad());
  shard.tier = Tier::Dram;
  shard.cache.rows = 512;
  FetchLoad fetch = describeShard(problem, 0, {0}, shard).fetch;
  double distinct = 1000 * -std::expm1(-0.256);
  EXPECT_NEAR(fetch.rows, distinct * (1 - 0.512), 1e-6);
  EXPECT_DOUBLE_EQ(fetch.hostReadBytes, 64 * fetch.rows);
  shard.cache.rows = 1024;
  EXPECT_EQ(describeShard(problem, 0, {0}, shard).fetch.rows, 0);
  // Half the rows have half the ids; half the columns all of them.
  shard.rowEnd = 500;
  shard.cache.rows = 256;
  EXPECT_NEAR(describeShard(problem, 0, {0}, shard).fetch.rows, fetch.rows / 2,
              1e-6);
  shard = makeShard("a", "a", 0, 1000, 0, 8, {0});
  shard.tier = Tier::Dram;
  shard.cache.rows = 512;
  EXPECT_NEAR(describeShard(problem, 0, {0}, shard).fetch.rows, fetch.rows,
              1e-6);
  // TorchRec's caches are counted as before.
  problem.target = Target::TorchRec19;
  EXPECT_EQ(describeShard(problem, 0, {0}, shard).fetch, FetchLoad());
}

TEST(ObjectiveTest, PublishedWaitsForTheLastAndTakesTheWorstDevice) {
  ToyModel model;
  Topology topology = *parseTopology("2xCPU");
  ObjectiveOptions options;
  options.kind = ObjectiveKind::Published;
  CostBreakdown cost = composeCost(topology, loads(), model, options);
  // compute + backward: 6 + 6 = 12 and 9 + 8 = 17; skews 0 and 5; forward
  // 3 + 2.5 and 4.
  EXPECT_DOUBLE_EQ(cost.devices[0].forwardCommunicationMs, 5.5);
  EXPECT_DOUBLE_EQ(cost.devices[1].forwardCommunicationMs, 4);
  EXPECT_DOUBLE_EQ(cost.costMs, 21);
}

TEST(ObjectiveTest, EvaluateSumsTheShardsOfEachDevice) {
  ShardingProblem problem = twoTables();
  ShardingPlan plan =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 12, {0}),
                         makeShard("a_1", "a", 0, 1000, 12, 16, {1}),
                         makeShard("b_0", "b", 0, 250, 0, 8, {0}),
                         makeShard("b_1", "b", 250, 500, 0, 8, {1})});
  CostBreakdown cost = evaluate(problem, plan, ToyModel(), {});
  EXPECT_DOUBLE_EQ(cost.devices[0].compute.forwardMs, 12 + 8);
  EXPECT_DOUBLE_EQ(cost.devices[1].compute.forwardMs, 4 + 8);
  // Half of b's rows get half of its ids.
  EXPECT_DOUBLE_EQ(cost.devices[0].compute.backwardMs, 4 + 0.5);
  // Of the 32 samples of each device the other one sends its columns.
  EXPECT_DOUBLE_EQ(cost.devices[0].forwardBytes,
                   32 * (12 + 8) * 4 + 32 * (4 + 8) * 4);
  EXPECT_DOUBLE_EQ(cost.devices[0].forwardCommunicationMs, 20);
}

TEST(ObjectiveTest, ReplicasExchangeNothingForward) {
  ShardingProblem problem = twoTables();
  Shard shard = makeShard("a_0", "a", 0, 1000, 0, 16, {0, 1});
  ShardWork work = describeShard(problem, 0, {0}, shard);
  EXPECT_EQ(work.forwardBytes, 0);
  EXPECT_EQ(work.inputBytes, 0);
  EXPECT_EQ(work.dims, 0);
  // Each works on half of the batch, but updates with all of it: 64 gradients
  // of 16 f32 and 256 ids of 4 bytes arrive.
  EXPECT_EQ(work.lookups, 128);
  EXPECT_EQ(work.outputRows, 32);
  EXPECT_EQ(work.updateLookups, 256);
  EXPECT_EQ(work.backwardBytes, 64 * 16 * 4 + 256 * 4);
}

TEST(ObjectiveTest, UniqueRows) {
  ShardingProblem problem = twoTables();
  Shard whole = makeShard("a_0", "a", 0, 1000, 0, 16, {0});
  // 256 uniform draws out of 1000 rows.
  EXPECT_NEAR(describeShard(problem, 0, {0}, whole).uniqueRows,
              1000 * (1 - std::exp(-0.256)), 1e-9);
  AccessStatistics access;
  access.batch = 64;
  access.reuse[0] = 0.5; // once
  access.reuse[2] = 0.5; // 3 to 4 times
  problem.tables[0].access = access;
  EXPECT_DOUBLE_EQ(describeShard(problem, 0, {0}, whole).uniqueRows,
                   256 / 2.25);
  // Half of a batch of 128: an id seen m times is missed with 0.5 ^ m.
  problem.tables[0].access->batch = 128;
  EXPECT_NEAR(describeShard(problem, 0, {0}, whole).uniqueRows,
              512 / 2.25 * (0.5 * 0.5 + 0.5 * (1 - std::pow(0.5, 3.5))), 1e-6);
}

TEST(ObjectiveTest, PresenceAndSeveralFeatures) {
  ShardingProblem problem = twoTables();
  Feature second = problem.features[0];
  second.name = "a_again";
  second.presence = 0.25;
  second.batch = 32;
  second.weighted = true;
  problem.features.push_back(second);
  ShardWork work = describeShard(problem, 0, {0, 2},
                                 makeShard("a_0", "a", 0, 1000, 0, 16, {0}));
  EXPECT_DOUBLE_EQ(work.pooling, 4 + 1);
  EXPECT_DOUBLE_EQ(work.lookups, 256 + 32);
  EXPECT_DOUBLE_EQ(work.outputRows, 64 + 32);
  EXPECT_DOUBLE_EQ(work.dims, 32);
}

class OneNumberModel : public ToyModel {
public:
  bool separatesBackward() const override { return false; }
};

TEST(ObjectiveTest, OneNumberModelsServeOnlyPublished) {
  OneNumberModel model;
  ObjectiveOptions options;
  EXPECT_THAT(text(checkObjective(model, options)),
              HasSubstr("objective: cost model 'sum' gives one number"));
  options.kind = ObjectiveKind::Published;
  EXPECT_EQ(text(checkObjective(model, options)), "");
  options.denseRestMs = -1;
  EXPECT_THAT(text(checkObjective(model, options)),
              HasSubstr("dense_rest_ms: expected a number of at least 0"));
}

} // namespace
