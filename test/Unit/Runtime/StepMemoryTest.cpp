//===- StepMemoryTest.cpp - Buffers of a step beside the planned bytes ----===//
//
// Shows that the planner, the artifact and a running step agree on the bytes of
// every buffer of every device: on random cuts, with and without groups, for
// all wire types. And that the planner sees that one shard cut by columns makes
// all owners of the table keep reduced rows until the norms of the others have
// come.
//
//===----------------------------------------------------------------------===//

#include "RandomSteps.h"
#include "World/World.h"
#include "neuroshard/Artifact/StepBuffers.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Traffic.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <algorithm>
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

/// Ids and backward phase of device 0, in which all distinct rows of a large
/// band wait for norms, since another band is cut. A run of these numbers on
/// random ids held 186.8 MiB of buffers; counted for each shard alone, without
/// norms, it was 31 MB.
TEST(StepMemory, ALargeBandBesideACutOneIsPlanned) {
  constexpr int64_t kHeld = 186 << 20;
  ShardingProblem problem = problemOf();
  problem.batch.globalSize = 4096;
  problem.tables[0].dim = 128;
  problem.features[0].meanPooling = 90;
  std::vector<neuroshard::Shard> shards = {
      shardOf({0, 0, 900000, 0, 128, {0}}),
      shardOf({0, 900000, kRows, 0, 64, {0}}),
      shardOf({0, 900000, kRows, 64, 128, {1}})};
  MemoryTerms sum = planMemory(problem, shards).devices[0];
  BufferBytes exact = planBuffers(problem, shards)[0];
  int64_t exactBytes = exact.idBytes() + exact.backwardBytes();
  EXPECT_GT(exactBytes, kHeld);
  EXPECT_LT(exactBytes, kHeld + kHeld / 8);
  EXPECT_GE(sum.idsBytes + sum.backwardBytes, exactBytes);
}

void expectEqualBytes(const BufferBytes &found, const BufferBytes &expected) {
  for (size_t kind = 0; kind < kNumBufferKinds; ++kind)
    EXPECT_EQ(found[static_cast<BufferKind>(kind)],
              expected[static_cast<BufferKind>(kind)])
        << bufferName(static_cast<BufferKind>(kind));
}

BufferBytes takenBy(nsrt_world *world, int device) {
  return world->device(device)->buffers->askedBytes();
}

/// A planner is not told which ids are padding, of which the places of weighted
/// ids follow.
void forgetPaddingOfWeighted(Model &model) {
  for (Exchange &exchange : model.exchanges)
    for (test::Lookup &lookup : exchange.lookups)
      if (lookup.weighted)
        lookup.padding.reset();
}

TEST(StepMemory, PlannedBuffersAreTaken) {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    RandomPlan plan(random);
    bool isTold = round % 4 > 0;
    if (isTold)
      forgetPaddingOfWeighted(plan.model);
    DataMaker maker(plan.model, Data::Integers, static_cast<unsigned>(round));
    std::vector<Batch> batches = maker.batches(plan.batches);
    Manifest artifact = parseManifest(
        writeManifest(describe(plan.model, plan.shards, plan.devices)));
    StepLoad load = loadOf(artifact, artifact.layouts, batches);
    std::vector<neuroshard::Shard> shards = describeShards(plan);
    auto expectPlanned = [&](const char *deviceClass, Engine engine) {
      std::vector<BufferBytes> expected =
          stepBuffers(artifact, artifact.layouts, load, engine);
      std::vector<BufferBytes> planned =
          planBuffers(describeProblem(plan, deviceClass), shards, load);
      for (size_t device = 0; device < planned.size(); ++device) {
        if (!isTold)
          planned[device][BufferKind::Places] =
              expected[device][BufferKind::Places];
        expectEqualBytes(planned[device], expected[device]);
      }
      return expected;
    };
    expectPlanned("H200", Engine::Gpu);
    std::vector<BufferBytes> onCpus = expectPlanned("CPU", Engine::Cpu);

    TestWorld world(plan.model, plan.shards, plan.devices);
    ASSERT_TRUE(world.get()) << world.error();
    Oracle oracle(plan.model);
    StepResult result;
    ASSERT_TRUE(
        world.train(batches, maker.gradients(oracle, batches), 0.1F, 1, result))
        << world.error();
    for (int device = 0; device < plan.devices; ++device)
      expectEqualBytes(takenBy(world.get(), device),
                       onCpus[static_cast<size_t>(device)]);
  }
}

/// The model's tables, larger and whole, all looked up by batches of one size.
ShardingProblem largeProblem(const RandomPlan &plan, const char *deviceClass,
                             std::vector<neuroshard::Shard> &shards) {
  ShardingProblem problem = describeProblem(plan, deviceClass);
  problem.batch.globalSize = 4096;
  problem.batch.inputCopies = 1;
  for (Feature &feature : problem.features) {
    feature.batch = 0;
    feature.meanPooling = 4;
  }
  for (neuroshard::Table &table : problem.tables) {
    table.rows *= 1000;
    table.dim *= 16;
    neuroshard::Shard &shard = shards.emplace_back();
    shard.table = table.name;
    shard.rowEnd = table.rows;
    shard.colEnd = table.dim;
    shard.devices = {
        static_cast<int>(plan.random() % problem.topology.devices.size())};
  }
  return problem;
}

/// Of whole tables; cuts take more on the ranks of the samples, which no shard
/// knows of.
TEST(StepMemory, SumsOverWholeTablesAreNoLess) {
  std::mt19937 random(7);
  for (const char *deviceClass : {"CPU", "H200"})
    for (int round = 0; round < 200; ++round) {
      SCOPED_TRACE(round);
      RandomPlan plan(random);
      std::vector<neuroshard::Shard> shards;
      ShardingProblem problem = largeProblem(plan, deviceClass, shards);
      if (round % 4 == 0)
        problem = served(std::move(problem));
      std::vector<BufferBytes> exact = planBuffers(problem, shards);
      MemoryReport sums = planMemory(problem, shards);
      for (size_t device = 0; device < exact.size(); ++device) {
        const MemoryTerms &terms = sums.devices[device];
        const BufferBytes &bytes = exact[device];
        EXPECT_GE(terms.idsBytes +
                      std::max(terms.forwardBytes, terms.backwardBytes),
                  bytes.idBytes() +
                      std::max(bytes.forwardBytes(), bytes.backwardBytes()));
      }
    }
}

} // namespace
} // namespace neuroshard::test
