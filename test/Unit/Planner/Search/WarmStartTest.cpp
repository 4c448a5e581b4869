//===- WarmStartTest.cpp - Tests of plans that start from another ---------===//

#include "InitialUnits/InitialUnits.h"
#include "LocalSearch/MovedBytes.h"
#include "Replan/FitRanges.h"
#include "Replan/KeepShards.h"
#include "Replan/Migration.h"
#include "Replan/RenameDevices.h"
#include "SearchTasks.h"
#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Verify.h"

#include <gmock/gmock.h>

using namespace neuroshard;
using namespace neuroshard::test;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace {

ShardingPlan wholeTables(const ShardingProblem &problem, int deviceOfA,
                         int deviceOfB) {
  return makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {deviceOfA}),
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
  // The same in the other group: 3 becomes 0, 2 becomes 1.
  ShardingPlan moved = wholeTables(problem, 3, 2);
  EXPECT_THAT(deviceNames(problem, before, moved), ElementsAre(2, 3, 1, 0));
  // What is across groups stays across groups: only a can keep its place.
  EXPECT_THAT(deviceNames(problem, before, wholeTables(problem, 2, 0)),
              ElementsAre(2, 3, 0, 1));
  problem.constraints.pins = {{0, {2, 3}}};
  EXPECT_THAT(deviceNames(problem, before, moved), ElementsAre(0, 1, 2, 3));
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

TEST(WarmStartTest, RepairingAPlanMovesLittle) {
  auto model = makeRooflineModel();
  ShardingProblem problem = twoTables("4xCPU@4GiB");
  problem.batch.globalSize = 4096;
  // A large table on each device, and six small ones with them on the first.
  std::vector<Shard> shards = wholeTables(problem, 0, 0).shards;
  auto add = [&](std::string name, int64_t rows, int device) {
    addTable(problem, makeTable(name, rows, 64), 20);
    shards.push_back(makeShard(name + "_0", name, 0, rows, 0, 64, {device}));
  };
  for (int i = 0; i < 4; ++i)
    add(numbered("large", i), 2'000'000, i);
  for (int i = 0; i < 6; ++i)
    add(numbered("small", i), 2000, 0);
  ShardingPlan before = makePlan(problem, shards);
  double kept = evaluate(problem, before, *model, {}).costMs;
  auto near = search(problem, *model, warmOptions(before, 100));
  ASSERT_TRUE(near);
  EXPECT_EQ(near->migration->previousCostMs, kept);
  EXPECT_LT(near->breakdown.costMs, 0.7 * kept);
  // Not a tenth of a large table.
  EXPECT_GT(near->migration->bytes, 0);
  EXPECT_LT(near->migration->bytes, 2'000'000 * 64 * 4 / 10);
  EXPECT_LE(near->breakdown.costMs + near->migration->moveMs / 100, kept);
  EXPECT_TRUE(verify(near->plan, problem).empty());
}

TEST(MigrationTest, PiecesTakeTheRangesTheirDevicesHad) {
  ShardingProblem problem = twoTables("4xCPU@1GiB");
  ShardingPlan before =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 8, {2}),
                         makeShard("a_1", "a", 0, 1000, 8, 16, {1}),
                         makeShard("b_0", "b", 0, 300, 0, 8, {3}),
                         makeShard("b_1", "b", 300, 500, 0, 8, {0})});
  // Half of device 2's columns go to device 0; b's order is turned round.
  ShardingPlan plan =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 4, {0}),
                         makeShard("a_1", "a", 0, 1000, 4, 12, {1}),
                         makeShard("a_2", "a", 0, 1000, 12, 16, {2}),
                         makeShard("b_0", "b", 0, 200, 0, 8, {0}),
                         makeShard("b_1", "b", 200, 500, 0, 8, {3})});
  fitRanges(problem, before, plan);
  EXPECT_EQ(migrationBetween(problem, before, plan).bytes, 1000 * 4 * 4);
  EXPECT_EQ(plan.shards[1].colBegin, 8);
  EXPECT_EQ(plan.shards[4].rowEnd, 300);
  EXPECT_TRUE(verify(plan, problem).empty()) << text(verify(plan, problem));
}

TEST(MigrationTest, ATableOfAnotherWidthMovesNothing) {
  ShardingProblem problem = twoTables();
  ShardingPlan before = wholeTables(problem, 0, 1);
  problem.tables[0].dim = 32;
  ShardingPlan after =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 32, {1}),
                         makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  EXPECT_EQ(migrationBetween(problem, before, after).bytes, 0);
}

/// The shards of a plan that stay under other rules or with less memory.
Kept keptOf(const ShardingProblem &problem, const ShardingPlan &previous) {
  SearchOptions options;
  return keepWhatServes(problem, *makeRooflineModel(), options, previous);
}

TEST(KeepShardsTest, OnlyTablesThatBreakARuleGo) {
  ShardingProblem problem = twoTables();
  ShardingPlan before = wholeTables(problem, 0, 1);
  EXPECT_THAT(keptOf(problem, before).released, SizeIs(0));
  problem.constraints.forbids = {{1, {1}}};
  Kept kept = keptOf(problem, before);
  EXPECT_THAT(kept.released,
              ElementsAre("table 'b' cannot stay: it may not be on device 1"));
  ASSERT_THAT(kept.shards, SizeIs(1));
  EXPECT_EQ(kept.shards[0].table, "a");
  problem.constraints.forbids.clear();
  problem.constraints.tables = {{0, {ShardingKind::RowWise}, 1}};
  EXPECT_THAT(keptOf(problem, before).released,
              ElementsAre("table 'a' cannot stay: it may not be sharded "
                          "table_wise"));
  problem.constraints.tables.clear();
  problem.constraints.separate = {{0, 1}};
  EXPECT_THAT(keptOf(problem, before).released, SizeIs(0));
  EXPECT_THAT(keptOf(problem, wholeTables(problem, 0, 0)).released, SizeIs(1));
}

TEST(KeepShardsTest, AFullDeviceLosesTheSmallestTableThatWillDo) {
  ShardingProblem problem = twoTables();
  addTable(problem, makeTable("c", 100000, 64), 1);
  ShardingPlan before = wholeTables(problem, 0, 0);
  before.shards.push_back(makeShard("c_0", "c", 0, 100000, 0, 64, {0}));
  int64_t needed = planMemory(problem, before.shards).devices[0].peakBytes();
  problem.topology.devices[0].memoryBytes = needed;
  EXPECT_THAT(keptOf(problem, before).released, SizeIs(0));
  problem.topology.devices[0].memoryBytes = needed - 1;
  Kept kept = keptOf(problem, before);
  ASSERT_THAT(kept.released, SizeIs(1));
  EXPECT_THAT(kept.released[0], HasSubstr("table 'b' cannot stay: device 0 "
                                          "would be 1 B above its memory"));
  problem.topology.devices[0].memoryBytes = needed - 20000;
  EXPECT_THAT(keptOf(problem, before).released[0], HasSubstr("table 'a'"));
  auto result =
      search(problem, *makeRooflineModel(), warmOptions(before, 1e-3));
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(result->migration->bytes, 64000);
  EXPECT_THAT(result->explanation, Contains(HasSubstr("table 'a' cannot")));
}

TEST(WarmStartTest, WithinTheToleranceTheFewestBytesMove) {
  auto model = makeRooflineModel();
  ShardingProblem problem = randomTask({10, 20, 4, 8}, 7);
  auto before = search(problem, *model, {});
  ASSERT_TRUE(before);
  for (size_t i = 0; i < problem.features.size(); i += 2)
    problem.features[i].meanPooling *= 1.2;
  SearchOptions options = warmOptions(before->plan, 1e12);
  options.warmStart->tolerance = 1;
  auto kept = search(problem, *model, options);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->migration->bytes, 0);
  EXPECT_THAT(kept->explanation,
              Contains(HasSubstr("within the tolerance of 100 %")));
  options.warmStart->tolerance = -1;
  EXPECT_FALSE(search(problem, *model, options));
}

TEST(WarmStartTest, ShardsThatStayKeepTheirNames) {
  ShardingProblem problem = twoTables();
  ShardingPlan before =
      makePlan(problem, {makeShard("hot", "a", 0, 1000, 0, 16, {0}),
                         makeShard("cold", "b", 0, 500, 0, 8, {1})});
  auto kept = search(problem, *makeRooflineModel(), warmOptions(before, 1e-6));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->plan.shards, before.shards);
}

TEST(WarmStartTest, ShardsWrittenByHandKeepTheirNames) {
  ShardingProblem problem = twoTables();
  problem.constraints.fixedShards = {
      makeShard("by_hand", "a", 0, 1000, 0, 16, {0})};
  ShardingPlan before =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {0}),
                         makeShard("by_hand", "b", 0, 500, 0, 8, {1})});
  auto kept = search(problem, *makeRooflineModel(), warmOptions(before, 1e-6));
  ASSERT_TRUE(kept);
  EXPECT_EQ(text(verify(kept->plan, problem)), "");
  EXPECT_THAT(kept->plan.shards, Contains(problem.constraints.fixedShards[0]));
}

TEST(ResidenceTest, CountsBytesThatADeviceDidNotHave) {
  ShardingProblem problem = twoTables();
  auto model = makeRooflineModel();
  SearchOptions options;
  SearchContext context(problem, *model, options);
  std::vector<UnitPtr> units = *initialUnits(context);
  SearchState placed(context, units);
  placed.place(0, 0);
  placed.place(1, 1);
  Board board(context, units, placed);
  MovedBytes migration(board, placed.plan(), 1e-3);
  auto pieceOf = [&](const char *table) {
    for (int piece : {0, 1})
      if (board.regionOf(board.piece(piece)).whole->shards[0].table == table)
        return piece;
    return -1;
  };
  // 4 of the 16 columns of a: 1000 x 4 x 4 bytes.
  Edit split = board.split(pieceOf("a"), 1, false, 12);
  EXPECT_DOUBLE_EQ(migration.costAfter(split), 16);
  EXPECT_DOUBLE_EQ(migration.costAfter(board.move(pieceOf("b"), 0)), 16);
  EXPECT_DOUBLE_EQ(migration.costAfter(board.swap(pieceOf("a"), pieceOf("b"))),
                   80);
  migration.apply(split);
  board.apply(split, {});
  EXPECT_DOUBLE_EQ(migration.costMs(), 16);
  // Going back costs nothing.
  int moved = board.piecesOn(1).back();
  Edit back = board.move(moved, 0);
  EXPECT_DOUBLE_EQ(migration.costAfter(back), 0);
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
  before = wholeTables(problem, 0, 1);
  before.shards[1].name = "";
  refused = search(problem, *model, warmOptions(before, 1));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(),
              HasSubstr("previous plan, shards[1]: a shard needs a name"));
  before.shards[1].name = "a_0";
  refused = search(problem, *model, warmOptions(before, 1));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(),
              HasSubstr("previous plan, shard 'a_0': another shard has the"));
  refused = search(problem, *model, warmOptions(ShardingPlan(), 0));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("horizon_steps"));
}

} // namespace
