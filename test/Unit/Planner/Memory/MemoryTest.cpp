//===- MemoryTest.cpp - Each memory term against numbers made by hand -----===//

#include "neuroshard/Planner/Memory.h"
#include "Support.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/ShardWork.h"
#include "neuroshard/Serialization/Json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

/// Memory of one shard of table `table`.
MemoryTerms termsOf(const ShardingProblem &problem, const Shard &shard) {
  int table = problem.tableIndex(shard.table);
  return shardMemory(problem, problem.tables[static_cast<size_t>(table)],
                     featuresOfTables(problem)[static_cast<size_t>(table)],
                     shard);
}

Shard wholeA(std::vector<int> devices = {0}) {
  return makeShard("a_0", "a", 0, 1000, 0, 16, std::move(devices));
}

TEST(MemoryTest, WholeTable) {
  MemoryTerms terms = termsOf(twoTables(), wholeA());
  EXPECT_EQ(terms.weightsBytes, 1000 * 16 * 4);
  EXPECT_EQ(terms.optimizerStateBytes, 0);
  // 2 copies of 64 x 4 ids, packed as i32, and 64 offsets of 8 bytes.
  EXPECT_EQ(terms.idsBytes, 2 * (64 * 4 * 4 + 64 * 8));
  EXPECT_EQ(terms.forwardBytes, 64 * 16 * 4);
  // Gradients, and 40 + 16 bytes per id.
  EXPECT_EQ(terms.backwardBytes, 64 * 16 * 4 + 256 * 56);
  EXPECT_EQ(terms.peakBytes(), 64000 + 3072 + 4096 + 14336);
}

TEST(MemoryTest, EarlierBackwardsLeaveIdsAndGradients) {
  ShardingProblem problem = twoTables();
  problem.batch.backwards = 3;
  MemoryTerms terms = termsOf(problem, wholeA());
  constexpr int64_t kLeft = 64 * 4 * 4 + 64 * 8 + 64 * 16 * 4;
  EXPECT_EQ(terms.idsBytes, 2 * (64 * 4 * 4 + 64 * 8));
  EXPECT_EQ(terms.forwardBytes, 64 * 16 * 4 + 2 * kLeft);
  EXPECT_EQ(terms.backwardBytes, 64 * 16 * 4 + 2 * kLeft + 3 * 256 * 56);
  // On the device of the samples: 32 of both features, with 5 ids of 8 bytes,
  // and what was sent of 16 and 8 columns.
  constexpr int64_t kSent = 32 * 5 * 8 + 2 * 32 * 8 + 32 * 24 * 4;
  MemoryTerms base = deviceBaseMemory(problem)[0];
  EXPECT_EQ(base.forwardBytes, 32 * 24 * 4 + 2 * kSent);
  EXPECT_EQ(base.backwardBytes, 2 * 32 * 24 * 4 + 2 * kSent);
  // Ranks of the samples pack gradients for the other three quarters of the
  // rows, too, and ids for the other half of the columns.
  terms = termsOf(problem, makeShard("a_0", "a", 0, 250, 0, 16, {0}));
  EXPECT_EQ(terms.forwardBytes,
            4096 + 2 * (64 * 4 + 64 * 8 + 4096 + 3 * 4096 / 4));
  terms = termsOf(problem, makeShard("a_0", "a", 0, 1000, 0, 8, {0}));
  EXPECT_EQ(terms.forwardBytes,
            2048 + 2 * (256 * 4 + 64 * 8 + 2048 + 256 * 4 / 2));
  // A replica keeps what it has gathered.
  terms = termsOf(problem, wholeA({0, 1}));
  EXPECT_EQ(terms.forwardBytes, 2 * kLeft);
  EXPECT_EQ(terms.backwardBytes, 3 * (kLeft + 256 * 56));
  // One that exchanges sums keeps these, and its own gradients, of each.
  problem.tables[0].rows = 16;
  terms = termsOf(problem, makeShard("a", "a", 0, 16, 0, 16, {0, 1}));
  constexpr int64_t kSums = 2 * 272 * 4 + 136 * 4 + 32 * 16 * 4;
  EXPECT_EQ(terms.forwardBytes, 2 * kSums);
  EXPECT_EQ(terms.backwardBytes, 3 * kSums + (3 * 16 + 1) * 8 + 3 * 128 * 56);
}

TEST(MemoryTest, TorchRecUpdatesInEachBackward) {
  ShardingProblem problem = twoTables();
  problem.target = Target::TorchRec19;
  MemoryTerms terms = termsOf(problem, wholeA());
  std::vector<MemoryTerms> base = deviceBaseMemory(problem);
  problem.batch.backwards = 3;
  EXPECT_EQ(termsOf(problem, wholeA()), terms);
  EXPECT_EQ(deviceBaseMemory(problem), base);
}

TEST(MemoryTest, RowsArePaddedTo16Bytes) {
  EXPECT_EQ(paddedRowBytes(1, ElementType::F32), 16);
  EXPECT_EQ(paddedRowBytes(4, ElementType::F32), 16);
  EXPECT_EQ(paddedRowBytes(5, ElementType::F32), 32);
  EXPECT_EQ(paddedRowBytes(9, ElementType::BF16), 32);
  ShardingProblem problem = twoTables();
  problem.tables[0].dim = 6;
  problem.tables[0].elementType = ElementType::F16;
  EXPECT_EQ(
      termsOf(problem, makeShard("a_0", "a", 0, 1000, 0, 6, {0})).weightsBytes,
      16000);
}

TEST(MemoryTest, OptimizerStateIsF32WhateverTheWeightsAre) {
  ShardingProblem problem = twoTables();
  problem.tables[0].elementType = ElementType::F16;
  auto state = [&](OptimizerKind kind) {
    problem.tables[0].optimizer.kind = kind;
    return termsOf(problem, wholeA()).optimizerStateBytes;
  };
  EXPECT_EQ(state(OptimizerKind::SGD), 0);
  EXPECT_EQ(state(OptimizerKind::Adagrad), 4 * 1000 * 16);
  EXPECT_EQ(state(OptimizerKind::RowWiseAdagrad), 4 * 1000);
  EXPECT_EQ(state(OptimizerKind::Adam), 8 * 1000 * 16);
  EXPECT_EQ(state(OptimizerKind::Momentum), 4 * 1000 * 16);
  EXPECT_EQ(state(OptimizerKind::RowWiseRMSprop), 4 * 1000);
  EXPECT_EQ(state(OptimizerKind::AdamW), 8 * 1000 * 16);
  EXPECT_EQ(state(OptimizerKind::FTRL), 8 * 1000 * 16);
  EXPECT_EQ(state(OptimizerKind::PartialRowWiseAdam), 4 * 1000 * (16 + 1));
  EXPECT_EQ(state(OptimizerKind::LARS), 4 * 1000 * 16);
  EXPECT_EQ(state(OptimizerKind::LAMB), 8 * 1000 * 16);
  EXPECT_EQ(state(OptimizerKind::PartialRowWiseLAMB), 4 * 1000 * (16 + 1));
  EXPECT_EQ(state(OptimizerKind::RowWiseAdagradWithCounter), 4 * 1000 * 3);
}

/// Column shards keep and send as many norms of a row as its step needs.
TEST(MemoryTest, NormsAreThoseOfTheOptimizer) {
  for (auto [kind, norms] : {std::pair(OptimizerKind::RowWiseAdagrad, 1),
                             {OptimizerKind::LARS, 2},
                             {OptimizerKind::LAMB, 2},
                             {OptimizerKind::PartialRowWiseLAMB, 4},
                             {OptimizerKind::RowWiseAdagradWithCounter, 1}}) {
    ShardingProblem problem = twoTables();
    problem.tables[0].optimizer.kind = kind;
    Shard half = makeShard("a_0", "a", 0, 1000, 0, 8, {0});
    ShardWork work =
        describeShard(problem, 0, featuresOfTables(problem)[0], half);
    EXPECT_EQ(work.normBytes, 2 * 4 * norms * work.uniqueRows);
    int64_t exact = termsOf(problem, half).backwardBytes;
    problem.optimizerSemantics = OptimizerSemantics::PerShard;
    EXPECT_EQ(exact - termsOf(problem, half).backwardBytes,
              256 * (8 * 4 + 2 * 4 * norms));
  }
}

TEST(MemoryTest, EachColumnShardHasItsRowState) {
  ShardingProblem problem = twoTables();
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  Shard half = makeShard("a_0", "a", 0, 1000, 0, 8, {0});
  MemoryTerms exact = termsOf(problem, half);
  EXPECT_EQ(exact.optimizerStateBytes, 4 * 1000);
  // The ids of the whole batch come to every column shard.
  EXPECT_EQ(exact.idsBytes, 3072);
  problem.optimizerSemantics = OptimizerSemantics::PerShard;
  MemoryTerms perShard = termsOf(problem, half);
  // Reduced rows wait for the norms: 256 rows at most, 8 columns, f32; and two
  // norms each.
  EXPECT_EQ(exact.backwardBytes - perShard.backwardBytes, 256 * (8 * 4 + 8));
}

TEST(MemoryTest, RowShardCastsPartialSumsOfFullWidth) {
  ShardingProblem problem = twoTables();
  problem.batch.outputType = ElementType::F16;
  problem.batch.wireType = WireFormat::F16;
  MemoryTerms terms =
      termsOf(problem, makeShard("a_0", "a", 0, 250, 0, 16, {0}));
  EXPECT_EQ(terms.weightsBytes, 250 * 64);
  // A quarter of the ids, all offsets.
  EXPECT_EQ(terms.idsBytes, 2 * (64 * 4 + 64 * 8));
  EXPECT_EQ(terms.forwardBytes, 64 * 16 * (4 + 2));
}

TEST(MemoryTest, UnpooledResultsGrowWithTheIds) {
  ShardingProblem problem = twoTables();
  problem.features[0].pooling = Pooling::None;
  problem.features[0].p99Pooling = 5;
  MemoryTerms terms = termsOf(problem, wholeA());
  EXPECT_EQ(terms.forwardBytes, 64 * 5 * 16 * 4);
  EXPECT_EQ(terms.backwardBytes, 64 * 5 * 16 * 4 + 64 * 5 * (48 + 16));
}

TEST(MemoryTest, WireCastNeedsStaging) {
  ShardingProblem problem = twoTables();
  problem.batch.wireType = WireFormat::BF16;
  EXPECT_EQ(termsOf(problem, wholeA()).forwardBytes, 64 * 16 * (4 + 2));
}

TEST(MemoryTest, ResultsAndGradientsAreCastToTypesOfTheirOwn) {
  ShardingProblem problem = twoTables();
  int64_t values = 64 * 16, update = 256 * 56;
  problem.batch.wireType = {WireFormat::F32, WireFormat::BF16};
  MemoryTerms terms = termsOf(problem, wholeA());
  EXPECT_EQ(terms.forwardBytes, values * 4);
  EXPECT_EQ(terms.backwardBytes, values * (4 + 2) + update);
  MemoryTerms base = deviceBaseMemory(problem)[0];
  EXPECT_EQ(base.forwardBytes, 32 * 24 * 4);
  EXPECT_EQ(base.backwardBytes, 32 * 24 * (2 * 4 + 2));
  // Copies gather gradients.
  EXPECT_EQ(termsOf(problem, wholeA({0, 1})).backwardBytes,
            (256 * 4 + 64 * 8) + values * 2 + update);

  problem.batch.wireType = {WireFormat::BF16, WireFormat::F32};
  terms = termsOf(problem, wholeA());
  EXPECT_EQ(terms.forwardBytes, values * (4 + 2));
  EXPECT_EQ(terms.backwardBytes, values * 4 + update);
  base = deviceBaseMemory(problem)[0];
  EXPECT_EQ(base.forwardBytes, 32 * 24 * (4 + 2));
  EXPECT_EQ(base.backwardBytes, 32 * 24 * 2 * 4);
  EXPECT_EQ(termsOf(problem, wholeA({0, 1})).backwardBytes,
            (256 * 4 + 64 * 8) + values * 4 + update);

  // Each row has a scale.
  problem.batch.wireType = {WireFormat::Int8, WireFormat::Fp8};
  int64_t sent = 64 * (16 + 4);
  terms = termsOf(problem, wholeA());
  EXPECT_EQ(terms.forwardBytes, values * 4 + sent);
  EXPECT_EQ(terms.backwardBytes, values * 4 + sent + update);
  base = deviceBaseMemory(problem)[0];
  EXPECT_EQ(base.forwardBytes, 32 * (24 * 4 + 24 + 2 * 4));
  EXPECT_EQ(base.backwardBytes, 32 * (24 * 2 * 4 + 24 + 2 * 4));
  EXPECT_EQ(termsOf(problem, wholeA({0, 1})).backwardBytes,
            (256 * 4 + 64 * 8) + sent + update);

  // f16 results need no cast to f16, and partial sums none to f32.
  problem.batch.outputType = ElementType::F16;
  problem.batch.wireType = {WireFormat::F16, WireFormat::F32};
  terms = termsOf(problem, wholeA());
  EXPECT_EQ(terms.forwardBytes, values * 2);
  EXPECT_EQ(terms.backwardBytes, values * (2 + 4) + update);
  terms = termsOf(problem, makeShard("a_0", "a", 0, 250, 0, 16, {0}));
  EXPECT_EQ(terms.forwardBytes, values * (4 + 2));
  EXPECT_EQ(terms.backwardBytes, values * 4 + update / 4);
}

TEST(MemoryTest, WeightedIdsAndSmallIds) {
  ShardingProblem problem = twoTables();
  problem.batch.idType = IdType::I32;
  problem.features[0].weighted = true;
  EXPECT_EQ(termsOf(problem, wholeA()).idsBytes, 2 * (256 * (4 + 4) + 64 * 8));
  problem.target = Target::TorchRec19;
  EXPECT_EQ(termsOf(problem, wholeA()).idsBytes, 2 * (256 * (4 + 4) + 64 * 4));
}

TEST(MemoryTest, LongSegmentsGetBufferRows) {
  ShardingProblem problem = twoTables();
  problem.features[0].meanPooling = 64;
  EXPECT_EQ(termsOf(problem, wholeA()).backwardBytes,
            64 * 16 * 4 + 4096 * 56 + 4 * 16 * 4);
}

TEST(MemoryTest, GpusSortInMemoryOfTheirOwn) {
  ShardingProblem problem = twoTables("2xH200");
  // 32 bytes and 9 of scratch per id, one chunk of 256 ids, what kernels are
  // told of a feature and 64 bags.
  int64_t update = 256 * 41 + 64 + 524 + 64;
  EXPECT_EQ(termsOf(problem, wholeA()).backwardBytes, 64 * 16 * 4 + update);
  problem.features[0].meanPooling = 5; // 320 ids: a second chunk
  EXPECT_EQ(termsOf(problem, wholeA()).backwardBytes,
            64 * 16 * 4 + update + 64 * 41 + 64);
  problem.target = Target::TorchRec19;
  EXPECT_EQ(termsOf(problem, wholeA()).backwardBytes, 64 * 16 * 4 + 320 * 56);
}

TEST(MemoryTest, StateOfNarrowRowsIsPadded) {
  ShardingProblem problem = twoTables();
  problem.tables[0].optimizer.kind = OptimizerKind::Adam;
  Shard narrow = makeShard("a_0", "a", 0, 1000, 0, 6, {0});
  EXPECT_EQ(termsOf(problem, narrow).optimizerStateBytes, 8 * 1000 * 8);
  problem.target = Target::TorchRec19;
  EXPECT_EQ(termsOf(problem, narrow).optimizerStateBytes, 8 * 1000 * 6);
}

TEST(MemoryTest, ReplicaGathersIdsAndGradients) {
  ShardingProblem problem = twoTables();
  MemoryTerms terms = termsOf(problem, wholeA({0, 1}));
  EXPECT_EQ(terms.weightsBytes, 64000);
  EXPECT_EQ(terms.idsBytes, 0);
  EXPECT_EQ(terms.forwardBytes, 0);
  EXPECT_EQ(terms.backwardBytes, (256 * 4 + 64 * 8) + 64 * 16 * 4 + 256 * 56);
  // TorchRec: a dense gradient, and its all-reduce bucket.
  problem.target = Target::TorchRec19;
  EXPECT_EQ(termsOf(problem, wholeA({0, 1})).backwardBytes, 2 * 64000);
}

TEST(MemoryTest, ReplicaOfFewRowsHoldsTheirSums) {
  ShardingProblem problem = twoTables();
  problem.tables[0].rows = 16;
  // 272 sums and as many totals, of which the device adds up half, rows to
  // update, and its own 32 gradients and 128 ids.
  EXPECT_EQ(
      termsOf(problem, makeShard("a", "a", 0, 16, 0, 16, {0, 1})).backwardBytes,
      2 * 272 * 4 + 136 * 4 + (3 * 16 + 1) * 8 + 32 * 16 * 4 + 128 * 56);
  // Of two inputs of other batches, ids and gradients are gathered.
  problem.features.push_back(problem.features[0]);
  problem.features[2].name = "again";
  problem.features[2].batch = 32;
  EXPECT_EQ(
      termsOf(problem, makeShard("a", "a", 0, 16, 0, 16, {0, 1})).backwardBytes,
      (256 + 128) * 4 + (64 + 32) * (8 + 16 * 4) + (256 + 128) * 56);
}

TEST(MemoryTest, EveryDeviceHoldsItsPartOfTheBatch) {
  ShardingProblem problem = twoTables("3xCPU@1GiB");
  MemoryTerms base = deviceBaseMemory(problem)[0];
  // ceil(64 / 3) = 22 samples; features with 4 and 1 ids, 16 and 8 columns.
  EXPECT_EQ(base.idsBytes, 2 * (22 * (4 + 1) * 8 + 2 * 22 * 8));
  EXPECT_EQ(base.forwardBytes, 22 * 24 * 4);
  EXPECT_EQ(base.backwardBytes, 2 * 22 * 24 * 4);
  EXPECT_EQ(base.denseReserveBytes, 0);
}

TEST(MemoryTest, ReservesComeFromTheDeviceClass) {
  ShardingProblem problem = twoTables("2xH200");
  problem.constraints.reserves = {};
  MemoryTerms base = deviceBaseMemory(problem)[0];
  EXPECT_EQ(base.denseReserveBytes, 2 * kGiB);
  EXPECT_EQ(base.fragmentationReserveBytes, 3 * kGiB);
  EXPECT_EQ(base.communicatorBytes, 4 * kGiB);
  problem.constraints.reserves.communicatorBytes = 7;
  EXPECT_EQ(deviceBaseMemory(problem)[0].communicatorBytes, 7);
  problem.topology = *parseTopology("1xH200");
  EXPECT_EQ(deviceBaseMemory(problem)[0].communicatorBytes, 0);
}

/// The problem's constraints go before what was measured on a device, and that
/// before the defaults of its class, of 256 MiB, 256 MiB and 0.
TEST(MemoryTest, ReservesAreThoseOfTheDevice) {
  ShardingProblem problem = twoTables("2xCPU");
  problem.constraints.reserves = {};
  problem.topology.devices[1].reserves = {std::nullopt, 5, 7};
  problem.constraints.reserves.fragmentationBytes = 3;
  std::vector<MemoryTerms> base = deviceBaseMemory(problem);
  EXPECT_EQ(base[0].denseReserveBytes, kGiB / 4);
  EXPECT_EQ(base[0].fragmentationReserveBytes, 3);
  EXPECT_EQ(base[0].communicatorBytes, 0);
  EXPECT_EQ(base[1].denseReserveBytes, kGiB / 4);
  EXPECT_EQ(base[1].fragmentationReserveBytes, 3);
  EXPECT_EQ(base[1].communicatorBytes, 7);
  problem.constraints.reserves = {};
  EXPECT_EQ(deviceBaseMemory(problem)[1].fragmentationReserveBytes, 5);
  EXPECT_EQ(planMemory(problem, {}).devices, deviceBaseMemory(problem));
  // Measured is what a process takes, also if it is alone.
  problem.topology = *parseTopology("1xCPU");
  EXPECT_EQ(deviceBaseMemory(problem)[0].communicatorBytes, 0);
  problem.topology.devices[0].reserves.communicatorBytes = 7;
  EXPECT_EQ(deviceBaseMemory(problem)[0].communicatorBytes, 7);
}

TEST(MemoryTest, HostTierKeepsRowStateOnTheDevice) {
  ShardingProblem problem = twoTables();
  problem.target = Target::TorchRec19;
  Shard shard = wholeA();
  shard.tier = Tier::Dram;
  problem.tables[0].optimizer.kind = OptimizerKind::Adagrad;
  MemoryTerms adagrad = termsOf(problem, shard);
  EXPECT_EQ(adagrad.hostBytes, 64000 + 64000);
  EXPECT_EQ(adagrad.weightsBytes + adagrad.optimizerStateBytes, 0);
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  problem.cacheLoadFactor = 0.1;
  MemoryTerms cached = termsOf(problem, shard);
  EXPECT_EQ(cached.hostBytes, 64000);
  EXPECT_EQ(cached.optimizerStateBytes, 4000);
  // 100 rows wanted: 4 sets of 32 slots.
  EXPECT_EQ(cached.weightsBytes, 128 * 64 + 4 * 1000 + 16 * 128);
  problem.tables[0].optimizer.kind = OptimizerKind::PartialRowWiseAdam;
  MemoryTerms both = termsOf(problem, shard);
  EXPECT_EQ(both.hostBytes, 64000 + 64000);
  EXPECT_EQ(both.optimizerStateBytes, 4000);
}

TEST(MemoryTest, PlanAddsUpAndJoiningColumnsTakesMemoryEverywhere) {
  ShardingProblem problem = twoTables();
  std::vector<Shard> shards = {makeShard("a_0", "a", 0, 1000, 0, 8, {0}),
                               makeShard("a_1", "a", 0, 1000, 8, 16, {1}),
                               makeShard("b_0", "b", 0, 500, 0, 8, {1})};
  MemoryReport report = planMemory(problem, shards);
  MemoryTerms expected = deviceBaseMemory(problem)[1];
  expected += termsOf(problem, shards[1]);
  expected += termsOf(problem, shards[2]);
  int64_t permute = 32 * 16 * 4;
  expected.forwardBytes += permute;
  expected.backwardBytes += permute;
  EXPECT_EQ(report.devices[1], expected);
}

/// One shard cut by columns makes all of its table exchange norms: a reduced
/// row for each distinct id, here of the band that no column cuts.
TEST(MemoryTest, WholeRowsExchangeNormsWithThoseCutByColumns) {
  ShardingProblem problem = twoTables();
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  std::vector<Shard> shards = {makeShard("a_0", "a", 0, 900, 0, 16, {0}),
                               makeShard("a_1", "a", 900, 1000, 0, 8, {1}),
                               makeShard("a_2", "a", 900, 1000, 8, 16, {1})};
  auto backward = [&] {
    return planMemory(problem, shards).devices[0].backwardBytes;
  };
  int64_t cut = backward();
  problem.optimizerSemantics = OptimizerSemantics::PerShard;
  // 900 rows get 231 of 256 ids.
  EXPECT_EQ(cut - backward(), 231 * (16 * 4 + 8));
  problem.optimizerSemantics = OptimizerSemantics::Exact;
  shards = {makeShard("a_0", "a", 0, 900, 0, 16, {0}),
            makeShard("a_1", "a", 900, 1000, 0, 16, {1})};
  int64_t permute = 32 * 16 * 4;
  EXPECT_EQ(cut - backward(), 231 * (16 * 4 + 8) + permute);
}

TEST(MemoryTest, WeightsOnlyCountsNothingElse) {
  ShardingProblem problem = twoTables("2xH200");
  problem.constraints.reserves = {};
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.tables[0].optimizer.kind = OptimizerKind::Adam;
  MemoryReport report = planMemory(
      problem, std::vector<Shard>{makeShard("a_0", "a", 0, 1000, 0, 8, {0})});
  EXPECT_EQ(report.devices[0].peakBytes(), 1000 * 8 * 4);
  EXPECT_EQ(report.devices[1].peakBytes(), 0);
}

TEST(MemoryTest, FormatBytes) {
  EXPECT_EQ(formatBytes(17), "17 B");
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(192 * kGiB), "192.0 GiB");
  EXPECT_EQ(formatBytes(24576 * kGiB), "24,576 GiB");
}

TEST(MemoryTest, DocumentedDefaultsAreTheOnesUsed) {
  std::string docs =
      *readFile(std::string(NEUROSHARD_SOURCE_DIR) + "/docs/memory.md");
  for (const DeviceClass &known : deviceClasses()) {
    char row[160];
    auto gib = [](int64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(kGiB);
    };
    std::snprintf(row, sizeof row, "| %s | %g | %g | %g | %g | %g |",
                  std::string(known.name).c_str(), gib(known.memoryBytes),
                  gib(known.hostMemoryBytes), gib(known.denseReserveBytes),
                  gib(known.fragmentationReserveBytes),
                  gib(known.communicatorReserveBytes));
    EXPECT_THAT(docs, HasSubstr(row));
  }
}

} // namespace
