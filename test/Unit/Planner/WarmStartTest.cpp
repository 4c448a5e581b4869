//===- WarmStartTest.cpp - Tests of plans that start from another ---------===//

#include "Migration.h"
#include "SearchTasks.h"
#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Verify.h"

#include <gmock/gmock.h>

using namespace neuroshard;
using namespace neuroshard::test;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace {

ShardingPlan wholeTables(const ShardingProblem &problem, int deviceOfA,
                         int deviceOfB) {
  return makePlan(problem,
                  {makeShard("a_0", "a", 0, 1000, 0, 16, {deviceOfA}),
                   makeShard("b_0", "b", 0, 500, 0, 8, {deviceOfB})});
}

TEST(MigrationTest, CountsWhatComesToADevice) {
  ShardingProblem problem = twoTables();
  problem.topology.levels.back().bandwidthGBps = 0.001;
  ShardingPlan before = wholeTables(problem, 0, 1);
  EXPECT_EQ(migrationBetween(problem, before, before).bytes, 0);
  // Columns 12 to 16 of a go from device 0 to 1.
  ShardingPlan after =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 12, {0}),
                         makeShard("a_1", "a", 0, 1000, 12, 16, {1}),
                         makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  Migration migration = migrationBetween(problem, before, after);
  EXPECT_EQ(migration.bytes, 1000 * 4 * 4);
  // 16 kB at 1 MB per second.
  EXPECT_DOUBLE_EQ(migration.moveMs, 16);
  ASSERT_THAT(migration.moves, SizeIs(1));
  EXPECT_EQ(migration.moves[0].table, "a");
  EXPECT_EQ(migration.moves[0].what,
            "rows [0, 1000) cols [12, 16) from device 0 to 1");
}

TEST(MigrationTest, OptimizerStateMovesToo) {
  ShardingProblem problem = twoTables();
  ShardingPlan before = wholeTables(problem, 0, 1);
  ShardingPlan after = wholeTables(problem, 1, 1);
  auto bytesWith = [&](OptimizerKind kind) {
    problem.tables[0].optimizer.kind = kind;
    return migrationBetween(problem, before, after).bytes;
  };
  EXPECT_EQ(bytesWith(OptimizerKind::SGD), 64000);
  EXPECT_EQ(bytesWith(OptimizerKind::Adagrad), 128000);
  EXPECT_EQ(bytesWith(OptimizerKind::Adam), 192000);
  EXPECT_EQ(bytesWith(OptimizerKind::RowWiseAdagrad), 68000);
}

TEST(MigrationTest, NearLinksAreFaster) {
  ShardingProblem problem = twoTables("2x2xA100-40GB");
  problem.topology.levels[0].bandwidthGBps = 1;
  problem.topology.levels[1].bandwidthGBps = 10;
  ShardingPlan before = wholeTables(problem, 0, 1);
  double near =
      migrationBetween(problem, before, wholeTables(problem, 1, 1)).moveMs;
  double far =
      migrationBetween(problem, before, wholeTables(problem, 2, 1)).moveMs;
  EXPECT_DOUBLE_EQ(far, 64000 / 1e6);
  EXPECT_DOUBLE_EQ(near, far / 10);
}

TEST(MigrationTest, ReplicasAndNewTablesCostOnlyWhatIsMissing) {
  ShardingProblem problem = twoTables("4xCPU@1GiB");
  ShardingPlan before =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {2})});
  ShardingPlan after =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {0, 1, 2, 3}),
                         makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  EXPECT_EQ(migrationBetween(problem, before, after).bytes, 3 * 64000);
  EXPECT_EQ(migrationBetween(problem, after, before).bytes, 0);
}

TEST(MigrationTest, KeepsWhatStillFits) {
  ShardingProblem problem = twoTables();
  ShardingPlan before =
      makePlan(problem, {makeShard("a_0", "a", 0, 400, 0, 16, {0}),
                         makeShard("a_1", "a", 400, 800, 0, 16, {1}),
                         makeShard("b_0", "b", 0, 500, 0, 8, {5})});
  // a has grown to 1000 rows; device 5 is gone.
  std::vector<Shard> kept = shardsToKeep(problem, before);
  ASSERT_THAT(kept, SizeIs(2));
  EXPECT_EQ(kept[1].rowEnd, 1000);
  problem.tables[0].rows = 300;
  kept = shardsToKeep(problem, before);
  ASSERT_THAT(kept, SizeIs(1));
  EXPECT_EQ(kept[0].rowEnd, 300);
  problem.tables[0].dim = 32;
  EXPECT_THAT(shardsToKeep(problem, before), SizeIs(0));
}

TEST(MigrationTest, RenamesDevicesInsideTheTopology) {
  ShardingProblem problem = twoTables("2x2xA100-40GB");
  ShardingPlan before = wholeTables(problem, 0, 1);
  // The same in the other group.
  ShardingPlan moved = wholeTables(problem, 3, 2);
  EXPECT_EQ(renameDevices(problem, before, moved).shards, before.shards);
  // Across groups the tables stay across groups.
  ShardingPlan apart =
      renameDevices(problem, before, wholeTables(problem, 2, 0));
  EXPECT_EQ(apart.shards[0].devices, std::vector<int>{0});
  EXPECT_GE(apart.shards[1].devices[0], 2);
  problem.constraints.pins = {{0, {2, 3}}};
  EXPECT_EQ(renameDevices(problem, before, moved).shards, moved.shards);
}

SearchOptions warmOptions(ShardingPlan previous, double horizon) {
  SearchOptions options;
  options.threads = 1;
  options.warmStart = WarmStart{std::move(previous), horizon};
  return options;
}

TEST(WarmStartTest, KeepsAPlanThatIsStillGood) {
  auto model = makeRooflineModel();
  for (uint64_t seed = 0; seed < 2; ++seed) {
    ShardingProblem problem = randomTask({}, seed);
    auto before = search(problem, *model, {});
    ASSERT_TRUE(before);
    auto after = search(problem, *model, warmOptions(before->plan, 1e9));
    ASSERT_TRUE(after);
    EXPECT_EQ(after->migration->bytes, 0) << seed;
    EXPECT_EQ(after->migration->previousCostMs, before->breakdown.costMs);
    EXPECT_EQ(after->breakdown.costMs, before->breakdown.costMs);
  }
}

TEST(WarmStartTest, TheHorizonDecidesWhetherMovingPays) {
  auto model = makeRooflineModel();
  ShardingProblem problem = twoTables();
  addTable(problem, makeTable("c", 100000, 64), 50);
  addTable(problem, makeTable("d", 100000, 64), 50);
  problem.batch.globalSize = 4096;
  ShardingPlan before = wholeTables(problem, 0, 1);
  before.shards.push_back(makeShard("c_0", "c", 0, 100000, 0, 64, {0}));
  before.shards.push_back(makeShard("d_0", "d", 0, 100000, 0, 64, {0}));
  double cost = evaluate(problem, before, *model, {}).costMs;
  auto brief = search(problem, *model, warmOptions(before, 1e-3));
  ASSERT_TRUE(brief);
  EXPECT_EQ(brief->migration->bytes, 0);
  EXPECT_DOUBLE_EQ(brief->breakdown.costMs, cost);
  auto lasting = search(problem, *model, warmOptions(before, 1e6));
  ASSERT_TRUE(lasting);
  EXPECT_GT(lasting->migration->bytes, 0);
  EXPECT_LT(lasting->breakdown.costMs, 0.7 * cost);
  EXPECT_TRUE(verify(lasting->plan, problem).empty());
}

TEST(WarmStartTest, PlansNewTablesAroundTheOld) {
  auto model = makeRooflineModel();
  ShardingProblem problem = twoTables();
  auto before = search(problem, *model, {});
  ASSERT_TRUE(before);
  addTable(problem, makeTable("c", 1000, 16), 4);
  auto after = search(problem, *model, warmOptions(before->plan, 1));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->migration->bytes, 0);
  EXPECT_FALSE(after->migration->previousCostMs);
  EXPECT_THAT(after->migration->whyNotPrevious, HasSubstr("'c'"));
  EXPECT_TRUE(verify(after->plan, problem).empty());
}

TEST(WarmStartTest, BadPreviousPlansAreRefused) {
  auto model = makeRooflineModel();
  ShardingProblem problem = twoTables();
  ShardingPlan before = wholeTables(problem, 0, 1);
  before.shards[0].devices = {-1};
  auto refused = search(problem, *model, warmOptions(before, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().limit, Limit::BadInput);
  EXPECT_THAT(refused.error().str(), HasSubstr("previous plan, shard 'a_0'"));
  refused = search(problem, *model, warmOptions(ShardingPlan(), 0));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("horizon_steps"));
}

} // namespace
