//===- TierCasesTest.cpp - Large models that need lower tiers -------------===//

#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/Random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

SearchOptions allTiers() {
  SearchOptions options;
  options.lowerTiers = {Tier::Dram, Tier::Ssd};
  return options;
}

/// The plan of a problem with all tiers, which must be valid.
SearchResult mustPlanWithTiers(const ShardingProblem &problem) {
  auto result = search(problem, *makeRooflineModel(), allTiers());
  if (!result) {
    ADD_FAILURE() << result.error().str();
    return {};
  }
  EXPECT_EQ(text(verify(result->plan, problem)), "");
  EXPECT_LE(result->lowerBoundMs, result->breakdown.costMs);
  std::printf("%.0f s, step %.2f ms, fetches %.2f ms\n", result->seconds,
              result->breakdown.costMs, result->breakdown.fetchMs);
  for (const std::string &line : result->explanation)
    if (line.starts_with("fetching"))
      std::puts(line.c_str());
  return *std::move(result);
}

bool hasTier(const ShardingPlan &plan, Tier tier) {
  return std::ranges::any_of(
      plan.shards, [&](const Shard &shard) { return shard.tier == tier; });
}

TEST(TierCasesTest, DlrmWithAdamOnDevicesOf40GiB) {
  ShardingProblem problem =
      *readWorkload(NEUROSHARD_SOURCE_DIR "/workloads/mlperf_dlrm_v2.json");
  for (Table &table : problem.tables)
    table.optimizer.kind = OptimizerKind::Adam;
  problem.topology = *parseTopology("8xA100-40GB");
  auto refused = search(problem, *makeRooflineModel(), {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(),
              HasSubstr("the 26 tables need 292.1 GiB (97.4 GiB weights + "
                        "194.7 GiB optimizer state)"));
  EXPECT_THAT(refused.error().advice,
              HasSubstr("or let tables lie below device memory: "
                        "tiers=\"hbm,dram,ssd\""));
  SearchResult result = mustPlanWithTiers(problem);
  EXPECT_TRUE(hasTier(result.plan, Tier::Dram));
  EXPECT_FALSE(hasTier(result.plan, Tier::Ssd));
}

TEST(TierCasesTest, TablesWhoseRowsAreAllCachedAreInDeviceMemory) {
  ShardingProblem problem =
      *readWorkload(NEUROSHARD_SOURCE_DIR "/workloads/criteo_kaggle.json");
  problem.topology = *parseTopology("2xCPU@1GiB");
  SearchResult result = mustPlanWithTiers(problem);
  EXPECT_TRUE(hasTier(result.plan, Tier::Ssd));
  for (const Shard &shard : result.plan.shards)
    EXPECT_LT(shard.cache.rows, shard.rows()) << shard.name;
}

/// 10 G parameters for each of these tables of dim 128, whose rows are by a
/// power law, up to billions, and whose ids are, too.
ShardingProblem manyRows(int tables) {
  ShardingProblem problem;
  problem.batch.globalSize = 65536;
  std::vector<double> rows;
  double sum = 0;
  for (int i = 0; i < tables; ++i)
    sum += rows.emplace_back(std::pow(i + 4, -0.9));
  AccessStatistics access;
  access.batch = 65536;
  access.reuse[0] = 1;
  for (double share = 1e-8; share < 0.5; share *= 10)
    access.rowMass.push_back({share, std::pow(share, 0.15)});
  access.rowMass.push_back({1, 1});
  MersenneTwister dice(1);
  for (int i = 0; i < tables; ++i) {
    double share = rows[static_cast<size_t>(i)] / sum;
    Table table = makeTable(numbered("t", i),
                            static_cast<int64_t>(1e10 / 128 * tables * share),
                            128, OptimizerKind::RowWiseAdagrad);
    table.elementType = ElementType::F16;
    table.access = access;
    addTable(problem, table, static_cast<double>(dice.between(1, 8)));
  }
  return problem;
}

double parametersOf(const ShardingProblem &problem) {
  double sum = 0;
  for (const Table &table : problem.tables)
    sum += static_cast<double>(table.rows) * static_cast<double>(table.dim);
  return sum;
}

/// 12 T parameters, or a tenth of all without NEUROSHARD_ALL.
TEST(TierCasesTest, TwelveTrillionParameters) {
  bool isAll = std::getenv("NEUROSHARD_ALL") != nullptr;
  ShardingProblem problem = manyRows(isAll ? 1200 : 120);
  std::printf("%.2f T parameters, largest %.2f G rows\n",
              parametersOf(problem) / 1e12,
              static_cast<double>(problem.tables.front().rows) / 1e9);
  problem.topology = *parseTopology(isAll ? "16x8xA100-40GB" : "2x8xA100-40GB");
  for (Host &host : problem.topology.hosts)
    host.memoryBytes = 1536 * kGiB;
  EXPECT_TRUE(hasTier(mustPlanWithTiers(problem).plan, Tier::Dram));
  problem.topology = *parseTopology(isAll ? "2x8xH200" : "2xH200");
  for (Host &host : problem.topology.hosts)
    host = {2048 * kGiB / (isAll ? 1 : 2), {.bytes = 16'000 * kGiB}};
  EXPECT_TRUE(hasTier(mustPlanWithTiers(problem).plan, Tier::Ssd));
}

} // namespace
