//===- StepMemoryTest.cpp - Buffers of a step beside the planned bytes ----===//
//
// Shows that the planner sees that one shard cut by columns makes all owners of
// the table keep reduced rows until the norms of the others have come.
//
//===----------------------------------------------------------------------===//

#include "TestModels.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <gtest/gtest.h>

#include <random>

namespace neuroshard::test {
namespace {

constexpr int64_t kRows = 1000000, kDim = 8, kSamples = 2048, kPooling = 64;

test::Model oneTable() {
  test::Model model;
  model.optimizer = test::Optimizer::RowwiseAdagrad;
  model.tables = {{"a", kRows, kDim}};
  Exchange exchange{8, false, 1, {}};
  exchange.lookups = {{0, 0}};
  model.exchanges = {exchange};
  return model;
}

ShardingProblem problemOf() {
  ShardingProblem problem;
  problem.batch.globalSize = kSamples;
  problem.batch.inputCopies = 1;
  problem.topology = *parseTopology("2xCPU@4GiB");
  problem.constraints.reserves = {0, 0, 0};
  neuroshard::Table table;
  table.name = "a";
  table.rows = kRows;
  table.dim = kDim;
  table.optimizer.kind = OptimizerKind::RowWiseAdagrad;
  problem.tables = {table};
  Feature feature;
  feature.meanPooling = kPooling;
  problem.features = {feature};
  return problem;
}

neuroshard::Shard shardOf(const ShardPlace &place) {
  neuroshard::Shard shard;
  shard.table = "a";
  shard.rowBegin = place.rowBegin;
  shard.rowEnd = place.rowEnd;
  shard.colBegin = place.colBegin;
  shard.colEnd = place.colEnd;
  shard.devices = place.devices;
  return shard;
}

/// Planned ids and backward phase, and held buffers, of device 0.
std::pair<int64_t, int64_t>
plannedAndTaken(const std::vector<ShardPlace> &places) {
  std::vector<neuroshard::Shard> shards;
  for (const ShardPlace &place : places)
    shards.push_back(shardOf(place));
  MemoryTerms planned = planMemory(problemOf(), shards).devices[0];
  TestWorld world(oneTable(), places, 2);
  EXPECT_TRUE(world.get()) << world.error();
  std::mt19937_64 random(1);
  Batch batch;
  batch.size = kSamples;
  batch.ids.emplace_back(kSamples);
  for (std::vector<int64_t> &bag : batch.ids[0])
    for (int64_t i = 0; i < kPooling; ++i)
      bag.push_back(static_cast<int64_t>(random() % kRows));
  std::vector<Values> gradients = {{std::vector<float>(kSamples * kDim, 1)}};
  StepResult result;
  EXPECT_TRUE(world.train({batch}, gradients, 0.1F, 1, result))
      << world.error();
  int64_t taken = nsrt_device_memory_bytes(nsrt_world_device(world.get(), 0),
                                           NSRT_MEMORY_BUFFERS);
  return {planned.idsBytes + planned.backwardBytes, taken};
}

/// What is planned is enough, and not twice as much as is taken.
TEST(StepMemory, OneColumnCutIsPlannedAsItIsTaken) {
  auto [whole, wholeTaken] = plannedAndTaken(
      {{0, 0, 900000, 0, kDim, {0}}, {0, 900000, kRows, 0, kDim, {1}}});
  EXPECT_LE(wholeTaken, whole);
  EXPECT_GT(2 * wholeTaken, whole);
  auto [cut, cutTaken] = plannedAndTaken({{0, 0, 900000, 0, kDim, {0}},
                                          {0, 900000, kRows, 0, 4, {0}},
                                          {0, 900000, kRows, 4, kDim, {1}}});
  EXPECT_LE(cutTaken, cut);
  EXPECT_GT(2 * cutTaken, cut);
  EXPECT_GT(cutTaken, wholeTaken);
}

} // namespace
} // namespace neuroshard::test
