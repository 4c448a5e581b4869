//===- CacheMemoryTest.cpp - Memory of row caches, made by hand -----------===//

#include "Support.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/PlanMemory.h"

#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

/// Memory of one shard.
MemoryTerms memoryOf(const ShardingProblem &problem, const Shard &shard) {
  auto table = static_cast<size_t>(problem.tableIndex(shard.table));
  return shardMemory(problem, problem.tables[table],
                     featuresOfTables(problem)[table], shard);
}

Shard shardOfA() { return makeShard("a_0", "a", 0, 1000, 0, 16, {0}); }

TEST(CacheMemoryTest, RowsOfEarlierBackwardsStayInTheCache) {
  ShardingProblem problem = twoTables();
  problem.batch.inputCopies = 1;
  problem.batch.backwards = 2;
  Shard shard = shardOfA();
  shard.tier = Tier::Ssd;
  shard.cache = {32, CachePolicy::Lru};
  // 512 rows in one set of 32 places, of 64 bytes and 16.
  EXPECT_EQ(memoryOf(problem, shard).weightsBytes, (32 + 512 - 32) * 80);
}

TEST(CacheMemoryTest, AShardOnDiskHasItsCacheInMemory) {
  ShardingProblem problem = twoTables();
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  Shard shard = shardOfA();
  MemoryTerms memory = memoryOf(problem, shard);
  shard.tier = Tier::Ssd;
  shard.cache = {960, CachePolicy::Lru};
  MemoryTerms disk = memoryOf(problem, shard);
  EXPECT_EQ(recordBytes({0, 1}, 16, ElementType::F32), 80);
  EXPECT_EQ(cachedRowBytes({0, 1}, 16, ElementType::F32), 64 + 4 + 16);
  // 512 ids of two batches in 30 sets: 17.1 rows on average in a set of 32.
  // Of these sets 0.01 rows spill together.
  EXPECT_EQ(disk.weightsBytes, (960 + 1) * 84);
  EXPECT_EQ(disk.optimizerStateBytes, 0);
  EXPECT_EQ(disk.diskBytes, 80000);
  EXPECT_EQ(disk.hostBytes, 0);
  shard.tier = Tier::Dram;
  EXPECT_EQ(memoryOf(problem, shard).hostBytes, 80000);
  EXPECT_EQ(memoryOf(problem, shard).diskBytes, 0);
  shard.tier = Tier::Ssd;
  EXPECT_EQ(disk.idsBytes, memory.idsBytes + 2 * 256 * 4);
  EXPECT_EQ(disk.backwardBytes, memory.backwardBytes + 256 * 8);
  // 512 rows in one set of 32 places.
  shard.cache.rows = 32;
  EXPECT_EQ(memoryOf(problem, shard).weightsBytes, (32 + 512 - 32) * 84);
}

TEST(CacheMemoryTest, CachesOfGpusHavePagesAndTheirHostKnowsThePlaces) {
  ShardingProblem problem = twoTables("2xH100");
  problem.tables[0].rows = 100'000;
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  Shard shard = makeShard("a_0", "a", 0, 100'000, 0, 16, {0});
  MemoryTerms held = memoryOf(problem, shard);
  shard.tier = Tier::Dram;
  shard.cache = {64'000, CachePolicy::Lru};
  MemoryTerms cached = memoryOf(problem, shard);
  // 64,000 rows of 64 and of 4 bytes, in pages of 2 MiB.
  EXPECT_EQ(cached.weightsBytes, (2 + 1) * 2 * kMiB);
  EXPECT_EQ(cached.optimizerStateBytes, 0);
  // Two batches of ids, packed as i32, and their places.
  int64_t ids = (cached.idsBytes - held.idsBytes) / 2;
  EXPECT_EQ(cached.hostBytes, 100'000 * 80 + 64'000 * 16 + 3 * ids);
  EXPECT_EQ(cached.backwardBytes, held.backwardBytes);

  // Rows of all shards of a device pass through the same buffers.
  Shard other = makeShard("b_0", "b", 0, 500, 0, 8, {0});
  other.tier = Tier::Ssd;
  other.cache = {32, CachePolicy::Lru};
  MemoryReport report = planMemory(problem, std::vector{shard, other});
  MemoryTerms terms = deviceBaseMemory(problem)[0];
  terms += cached;
  terms += memoryOf(problem, other);
  EXPECT_EQ(report.devices[0].weightsBytes, terms.weightsBytes + 8 * kMiB);
  EXPECT_EQ(report.devices[0].hostBytes, terms.hostBytes + 24 * kMiB);
  EXPECT_EQ(report.hostBytes[0], terms.hostBytes + 24 * kMiB);
  EXPECT_EQ(report.devices[1], deviceBaseMemory(problem)[1]);
}

} // namespace
