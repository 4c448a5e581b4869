//===- LowerTiersTest.cpp - Plans with tables below device memory ---------===//
//
// Shows that a table with a cache share is planned in its tier, whatever its
// cuts are, where memory would not hold it, and what is refused.
//
//===----------------------------------------------------------------------===//

#include "Searches.h"
#include "Support.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

/// 256 MB of table "large" beside small ones, on devices of 64 MiB.
ShardingProblem largeProblem(double cacheShare) {
  ShardingProblem problem = twoTables("2xCPU@64MiB");
  addTable(problem, makeTable("large", 1000000, 64), 2);
  problem.constraints.tables.push_back({.table = 2,
                                        .allowedKinds = {},
                                        .minWidth = 1,
                                        .cacheShare = cacheShare});
  return problem;
}

tl::expected<SearchResult, PlanningError> planOf(const ShardingProblem &problem,
                                                 Algorithm algorithm) {
  SearchOptions options;
  options.algorithm = algorithm;
  SumModel model([](const ShardWork &shard) {
    return ComputeMs{1e-3 * shard.lookups, 1e-3 * shard.updateLookups};
  });
  return search(problem, model, options);
}

TEST(LowerTiers, AreCachedWhereMemoryDoesNotHoldThem) {
  ASSERT_FALSE(planOf(largeProblem(0), Algorithm::Default));
  ShardingProblem problem = largeProblem(0.1);
  for (Algorithm algorithm : {Algorithm::Default, Algorithm::Dim,
                              Algorithm::Random, Algorithm::Published}) {
    auto result = planOf(problem, algorithm);
    ASSERT_TRUE(result) << toString(algorithm);
    EXPECT_EQ(text(verify(result->plan, problem)), "");
    for (const Shard &shard : result->plan.shards) {
      bool isLarge = shard.table == "large";
      EXPECT_EQ(shard.tier, isLarge ? Tier::Ssd : Tier::Hbm);
      int64_t places = (shard.rows() / 10 + 31) / 32 * 32;
      EXPECT_EQ(shard.cache.rows, isLarge ? places : 0);
      EXPECT_FALSE(isLarge && shard.hasCopies());
    }
  }
}

TEST(LowerTiers, AreChosenWhereMemoryIsTooSmallAndDiskIsAllowed) {
  ShardingProblem problem = largeProblem(0);
  problem.constraints.tables.clear();
  addTable(problem, makeTable("hot", 100000, 64), 40);
  SearchOptions options;
  options.lowerTiers = {Tier::Ssd};
  SumModel model([](const ShardWork &shard) {
    return ComputeMs{1e-3 * shard.lookups, 1e-3 * shard.updateLookups};
  });
  auto result = search(problem, model, options);
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(text(verify(result->plan, problem)), "");
  int64_t cached = 0;
  for (const Shard &shard : result->plan.shards) {
    EXPECT_EQ(shard.tier == Tier::Ssd, shard.table == "large") << shard.name;
    cached += shard.cache.rows * shard.width() / 64;
  }
  // Most of what the others leave of 128 MiB.
  EXPECT_GT(cached * 272, 70 * kMiB);
  EXPECT_LT(cached * 272, 128 * kMiB);
  EXPECT_THAT(result->explanation.front(),
              HasSubstr("table 'large' is on disk, with a cache of "));
  EXPECT_THAT(result->plan.provenance.settings,
              testing::Contains(
                  std::pair<std::string, std::string>("tiers", "hbm,ssd")));

  // Nothing is on disk if memory holds all.
  problem.topology = *parseTopology("2xCPU@1GiB");
  result = search(problem, model, options);
  ASSERT_TRUE(result);
  for (const Shard &shard : result->plan.shards)
    EXPECT_EQ(shard.tier, Tier::Hbm);
  // Caches for what batches use take more than there is.
  problem.topology = *parseTopology("2xCPU@200000B");
  result = search(problem, model, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().limit, Limit::DeviceMemory);
  EXPECT_THAT(
      result.error().str(),
      HasSubstr("with tables in lower tiers there is no plan either: they "
                "need at least "));
}

TEST(LowerTiers, HaveCachesOfADeviceWhereTablesStayWhole) {
  ShardingProblem problem = twoTables("2xH100@80MiB");
  addTable(problem, makeTable("large", 1000000, 64), 2);
  SumModel model([](const ShardWork &shard) {
    return ComputeMs{1e-3 * shard.lookups, 1e-3 * shard.updateLookups};
  });
  SearchOptions options;
  options.lowerTiers = {Tier::Dram};
  for (Algorithm algorithm : {Algorithm::Dim, Algorithm::Random}) {
    options.algorithm = algorithm;
    auto result = search(problem, model, options);
    ASSERT_TRUE(result) << result.error().str();
    EXPECT_EQ(text(verify(result->plan, problem)), "");
    const Shard &large = result->plan.shards.back();
    EXPECT_EQ(large.tier, Tier::Dram);
    // Rows of 256 bytes fill what 8 MiB of staging leave of one device.
    EXPECT_GT(large.cache.rows * 256, 68 * kMiB);
    EXPECT_LT(large.cache.rows * 256, 72 * kMiB);
  }
}

TEST(LowerTiers, HaveShardsWhoseRowsTheirCachesCanNumber) {
  ShardingProblem problem = twoTables("2xH100@1GiB");
  addTable(problem, makeTable("large", 10'000'000'000, 4), 2);
  problem.constraints.tables.push_back({.table = 2, .cacheShare = 0.001});
  auto result = planOf(problem, Algorithm::Default);
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(text(verify(result->plan, problem)), "");
  ShardingPlan whole = result->plan;
  std::erase_if(whole.shards,
                [](const Shard &shard) { return shard.table == "large"; });
  whole.shards.push_back(
      makeShard("large_0", "large", 0, 10'000'000'000, 0, 4, {0}));
  whole.shards.back().tier = Tier::Dram;
  whole.shards.back().cache.rows = 320;
  EXPECT_THAT(text(verify(whole, problem)),
              HasSubstr("a shard in tier dram must have at most 4294967295 "
                        "rows, found 10000000000"));
}

TEST(LowerTiers, AreCompletedAroundShardsWrittenByHand) {
  ShardingProblem problem = largeProblem(0.1);
  Shard byHand = makeShard("by_hand", "large", 0, 1000000, 0, 8, {0});
  byHand.tier = Tier::Ssd;
  byHand.cache = {64, CachePolicy::Lfu};
  problem.constraints.fixedShards = {byHand};
  auto result = planOf(problem, Algorithm::Default);
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(text(verify(result->plan, problem)), "");
  EXPECT_EQ(std::ranges::count(result->plan.shards, byHand), 1);
  for (const Shard &shard : result->plan.shards)
    EXPECT_EQ(shard.tier == Tier::Ssd, shard.table == "large");
}

TEST(LowerTiers, MustBeThereInGivenPlans) {
  ShardingProblem problem = largeProblem(0.1);
  problem.topology = *parseTopology("2xCPU@1GiB");
  ShardingPlan plan = makePlan(
      problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {0}),
                makeShard("b_0", "b", 0, 500, 0, 8, {0}),
                makeShard("large_0", "large", 0, 1000000, 0, 64, {1})});
  EXPECT_THAT(text(verify(plan, problem)),
              HasSubstr("shard 'large_0': must be in tier ssd, since its table "
                        "has a cache_share, found tier hbm"));
  plan.shards[2].tier = Tier::Ssd;
  EXPECT_THAT(text(verify(plan, problem)),
              HasSubstr("the cache of a shard of 1000000 rows in tier ssd must "
                        "have a multiple of 32 rows from 32 to 1000000, found "
                        "0"));
  plan.shards[2].cache.rows = 3200;
  EXPECT_EQ(text(verify(plan, problem)), "");
}

TEST(LowerTiers, AreHostMemoryForGpusUnlessTheTableNamesDisk) {
  ShardingProblem problem = largeProblem(0.1);
  auto tierOfLarge = [&] {
    auto result = planOf(problem, Algorithm::Default);
    EXPECT_TRUE(result) << result.error().str();
    Tier tier = Tier::Hbm;
    for (const Shard &shard : result->plan.shards)
      if (shard.table == "large")
        tier = shard.tier;
    return tier;
  };
  problem.topology = *parseTopology("2xH100");
  EXPECT_EQ(tierOfLarge(), Tier::Dram);
  problem.constraints.tables[0].tier = Tier::Ssd;
  EXPECT_EQ(tierOfLarge(), Tier::Ssd);
  problem.constraints.tables[0].tier = Tier::Dram;
  EXPECT_EQ(tierOfLarge(), Tier::Dram);
  // The devices of a table may be of both kinds.
  problem.constraints.tables[0].tier = std::nullopt;
  problem.topology.devices[1].deviceClass = "CPU";
  EXPECT_EQ(tierOfLarge(), Tier::Ssd);
}

TEST(LowerTiers, OfHostsWithoutRoomForHalfAreShared) {
  ShardingProblem problem = largeProblem(0.1);
  problem.topology = *parseTopology("2x2xH100");
  // 256 MB in shards of two hosts, whose memory they and what moves their rows
  // fill to 90 %.
  for (Host &host : problem.topology.hosts)
    host.memoryBytes = 160'000'000;
  auto result = planOf(problem, Algorithm::Default);
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(text(verify(result->plan, problem)), "");
  for (int64_t bytes : result->memory.hostBytes)
    EXPECT_GT(bytes, 256'000'000 - 160'000'000 - 1);
}

TEST(LowerTiers, AreForTargetNativeAndTheirDevices) {
  ShardingProblem problem = largeProblem(1.5);
  EXPECT_THAT(text(check(problem)), HasSubstr("cache_share"));
  problem = largeProblem(0);
  problem.constraints.tables[0].tier = Tier::Ssd;
  EXPECT_EQ(text(check(problem)),
            "constraints.tables[0].tier: only a table with a cache_share above "
            "0 is below device memory; give one, or leave out the tier");
  problem.constraints.tables[0].cacheShare = 0.1;
  EXPECT_EQ(text(check(problem)), "");
  problem.constraints.tables[0].tier = Tier::Hbm;
  EXPECT_EQ(text(check(problem)), "constraints.tables[0].tier: expected dram "
                                  "or ssd, got: hbm, in which no table has a "
                                  "cache");
  problem.constraints.tables[0].tier = Tier::Dram;
  EXPECT_EQ(text(check(problem)),
            "constraints.tables[0].tier: tier dram is for GPUs: the memory of "
            "device 0, a CPU, is that of its host; use hbm or ssd");
  problem = largeProblem(0.1);
  problem.target = Target::TorchRec19;
  EXPECT_THAT(text(check(problem)),
              HasSubstr("target torchrec-1.9 does not run shards in tier ssd"));
  problem.topology = *parseTopology("2xH100");
  EXPECT_THAT(text(check(problem)),
              HasSubstr("target torchrec-1.9 sizes caches itself; give a "
                        "cache_load_factor instead"));
}

} // namespace
