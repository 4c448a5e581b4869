//===- VerifyTest.cpp - Every rule of verify() notices its broken plan ----===//

#include "neuroshard/Planner/Verify.h"
#include "Support.h"
#include "neuroshard/Model/TableFingerprint.h"
#include "neuroshard/Planner/PlanMemory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

/// Table a in 2 x 2 pieces over both devices, b on device 1.
ShardingPlan goodPlan(const ShardingProblem &problem) {
  return makePlan(problem, {makeShard("a_0", "a", 0, 400, 0, 8, {0}),
                            makeShard("a_1", "a", 0, 400, 8, 16, {1}),
                            makeShard("a_2", "a", 400, 1000, 0, 12, {1}),
                            makeShard("a_3", "a", 400, 1000, 12, 16, {0}),
                            makeShard("b_0", "b", 0, 500, 0, 8, {1})});
}

class VerifyTest : public testing::Test {
protected:
  std::string errors() const { return text(verify(plan, problem)); }

  ShardingProblem problem = twoTables();
  ShardingPlan plan = goodPlan(problem);
};

TEST_F(VerifyTest, GoodPlanPasses) { EXPECT_EQ(errors(), ""); }

TEST_F(VerifyTest, ReplicatedTablePasses) {
  plan = makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {0, 1}),
                            makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  EXPECT_EQ(errors(), "");
}

TEST_F(VerifyTest, MissingRows) {
  plan.shards[2].rowBegin = 410;
  EXPECT_EQ(errors(), "table 'a': no shard covers rows [400, 410) cols [0, "
                      "12); every element must be covered exactly once");
}

TEST_F(VerifyTest, MissingShardAndMissingTable) {
  plan.shards.erase(plan.shards.begin() + 3, plan.shards.end());
  EXPECT_EQ(errors(),
            "table 'a': no shard covers rows [400, 1000) cols [12, 16); every "
            "element must be covered exactly once\n"
            "table 'b': no shard covers rows [0, 500) cols [0, 8); every "
            "element must be covered exactly once");
}

TEST_F(VerifyTest, MissingLastRows) {
  plan.shards[4].rowEnd = 499;
  EXPECT_EQ(errors(), "table 'b': no shard covers rows [499, 500) cols [0, 8); "
                      "every element must be covered exactly once");
}

TEST_F(VerifyTest, OverlappingRows) {
  plan.shards[0].rowEnd = 401;
  EXPECT_EQ(errors(), "table 'a': shards 'a_0' (rows [0, 401) cols [0, 8)) and "
                      "'a_2' (rows [400, 1000) cols [0, 12)) overlap");
}

TEST_F(VerifyTest, OverlapWithTheShardToTheLeft) {
  plan.shards[3].colBegin = 8;
  EXPECT_THAT(errors(), HasSubstr("'a_2' (rows [400, 1000) cols [0, 12)) and "
                                  "'a_3' (rows [400, 1000) cols [8, 16)) "
                                  "overlap"));
}

TEST_F(VerifyTest, SameShardTwice) {
  plan.shards.push_back(plan.shards[4]);
  EXPECT_EQ(errors(), "shard 'b_0': another shard has the same name");
  plan.shards.back().name = "b_1";
  EXPECT_THAT(errors(), HasSubstr("overlap"));
}

TEST_F(VerifyTest, UnalignedColumnBoundary) {
  plan.shards[0].colEnd = 6;
  plan.shards[1].colBegin = 6;
  EXPECT_EQ(errors(), "shard 'a_0': inner column boundary must be a multiple "
                      "of 4, got: 6\n"
                      "shard 'a_1': inner column boundary must be a multiple "
                      "of 4, got: 6");
}

TEST_F(VerifyTest, LastColumnMayBeUnaligned) {
  problem.tables[1].dim = 7;
  plan.shards[4].colEnd = 7;
  plan.fingerprint = tableFingerprint(problem.tables);
  EXPECT_EQ(errors(), "");
}

TEST_F(VerifyTest, RangesOutsideTheTable) {
  plan.shards[4].rowEnd = 501;
  EXPECT_EQ(errors(), "shard 'b_0': rows must be a non-empty range inside [0, "
                      "500), got: rows [0, 501)");
  plan.shards[4].rowEnd = 0;
  EXPECT_THAT(errors(), HasSubstr("rows must be a non-empty range"));
  plan.shards[4] = makeShard("b_0", "b", 0, 500, -4, 8, {1});
  EXPECT_THAT(errors(), HasSubstr("columns must be a non-empty range inside "
                                  "[0, 8), got: cols [-4, 8)"));
}

TEST_F(VerifyTest, Devices) {
  plan.shards[0].devices = {2};
  EXPECT_EQ(errors(), "shard 'a_0': devices must be in [0, 2), got: 2");
  plan.shards[0].devices = {};
  EXPECT_EQ(errors(), "shard 'a_0': a shard needs at least one device");
  plan.shards[0].devices = {0, 0};
  EXPECT_EQ(errors(), "shard 'a_0': device 0 is listed more than once");
}

TEST_F(VerifyTest, UnknownTable) {
  plan.shards[4].table = "c";
  EXPECT_EQ(errors(), "shard 'b_0': unknown table 'c'");
}

TEST_F(VerifyTest, Header) {
  plan.deviceCount = 8;
  EXPECT_EQ(errors(), "plan: made for 8 devices, the topology has 2");
  plan = goodPlan(problem);
  plan.optimizerSemantics = OptimizerSemantics::PerShard;
  EXPECT_EQ(errors(), "plan: optimizer_semantics is per_shard, the problem "
                      "asks for exact");
  plan = goodPlan(problem);
  problem.tables[0].optimizer.kind = OptimizerKind::Adam;
  EXPECT_THAT(errors(), HasSubstr("plan: made for other tables"));
}

TEST_F(VerifyTest, CopiesAreOnAnyDevicesWhereTheTargetHasThem) {
  plan.shards[0].devices = {0, 1};
  EXPECT_EQ(errors(), "");
  plan.shards[0].devices = {0, 0};
  EXPECT_EQ(errors(), "shard 'a_0': device 0 is listed more than once");
  plan.shards[0].devices = {0, 1};
  for (Shard &shard : plan.shards)
    if (shard.table == "a")
      shard.route = Route::Relay;
  EXPECT_THAT(errors(), HasSubstr("relays serve all groups, and the copies of "
                                  "shard 'a_0' some ranks each"));
  problem.target = Target::TorchRec19;
  plan = goodPlan(problem);
  plan.shards[0].devices = {0, 1};
  EXPECT_THAT(errors(),
              HasSubstr("shard 'a_0': only a whole table can be replicated, "
                        "got: rows [0, 400) cols [0, 8)"));
  problem.topology = *parseTopology("3xCPU@1GiB");
  plan = makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {0, 1}),
                            makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  EXPECT_THAT(errors(),
              HasSubstr("shard 'a_0': a replicated table must be on all 3 "
                        "devices, got: 2"));
}

TEST_F(VerifyTest, CopiesThatDrift) {
  auto drifting = [&](int64_t every, std::vector<int> devices) {
    plan = makePlan(problem, {makeShard("a_0", "a", 0, 400, 0, 16, {0, 1}),
                              makeShard("a_1", "a", 400, 1000, 0, 16, devices),
                              makeShard("b_0", "b", 0, 500, 0, 8, {1})});
    plan.shards[0].syncEvery = 5;
    plan.shards[1].syncEvery = every;
  };
  drifting(5, {0, 1});
  EXPECT_EQ(errors(), "");
  problem.tables[0].dynamicIds = true;
  plan.fingerprint = "";
  EXPECT_THAT(errors(), HasSubstr("table 'a': copies of a table with dynamic "
                                  "ids cannot drift"));
  problem = twoTables();
  problem.tables[0].optimizer = {OptimizerKind::RowWiseAdagradWithCounter};
  plan.fingerprint = "";
  EXPECT_THAT(errors(), HasSubstr("table 'a': copies of a table whose "
                                  "optimizer counts steps of rows cannot"));
  problem = twoTables();
  drifting(4, {0, 1});
  EXPECT_EQ(errors(), "shard 'a_1': must have the sync_every of the other "
                      "shards of its table, 5, got: 4");
  drifting(5, {1});
  EXPECT_THAT(errors(), HasSubstr("sync_every is for shards with copies"));
  problem.topology = *parseTopology("3xCPU@1GiB");
  drifting(5, {0, 1, 2});
  EXPECT_EQ(errors(), "shard 'a_1': must have as many copies as the other "
                      "shards of its table, since they drift: 2, got: 3");
  drifting(5, {1, 2});
  problem.target = Target::TorchRec19;
  EXPECT_THAT(errors(), HasSubstr("torchrec-1.9 has no copies that drift"));
}

TEST_F(VerifyTest, CopiesDriftAsTheConstraintSays) {
  problem.constraints.tables = {{.table = 0, .syncEvery = 5}};
  plan.shards[0].devices = {0, 1};
  EXPECT_THAT(errors(), HasSubstr("shard 'a_0': must have sync_every 5 as its "
                                  "table, since it has copies, got: 0"));
  plan = makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {0, 1}),
                            makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  plan.shards[0].syncEvery = 5;
  EXPECT_EQ(errors(), "");
}

TEST_F(VerifyTest, NormsDoNotGoWithCopiesThatDrift) {
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  plan = makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 8, {0, 1}),
                            makeShard("a_1", "a", 0, 1000, 8, 16, {0, 1}),
                            makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  plan.shards[0].syncEvery = plan.shards[1].syncEvery = 5;
  EXPECT_THAT(errors(), HasSubstr("copies cannot drift where columns exchange "
                                  "norms of rows"));
  problem.optimizerSemantics = plan.optimizerSemantics =
      OptimizerSemantics::PerShard;
  EXPECT_EQ(errors(), "");
}

TEST_F(VerifyTest, DeviceMemory) {
  // 1024 samples x 4 ids; the error lists the bytes by kind.
  problem.topology.devices[1].memoryBytes = 60000;
  EXPECT_THAT(errors(), HasSubstr("device 1: needs "));
  EXPECT_THAT(errors(), HasSubstr(", has 58.6 KiB"));
  problem.topology.devices[1].memoryBytes = 200000;
  EXPECT_EQ(errors(), "");
}

TEST_F(VerifyTest, HostMemory) {
  plan.shards[4].tier = Tier::Dram;
  plan.shards[4].cache.rows = 32;
  EXPECT_EQ(errors(), "shard '" + plan.shards[4].name +
                          "': tier dram is for GPUs: the memory of device 1, a "
                          "CPU, is that of its host; use hbm or ssd");
  problem.target = Target::TorchRec19;
  plan = makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {0}),
                            makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  plan.shards[1].tier = Tier::Dram;
  EXPECT_EQ(errors(), "");
  problem.topology.hosts[0].memoryBytes = 15999;
  EXPECT_EQ(errors(), "host 0: needs 15.6 KiB, has 15.6 KiB");
  problem.topology.hosts[0].memoryBytes = 16000;
  EXPECT_EQ(errors(), "");
}

TEST_F(VerifyTest, LowerTiersOfGpus) {
  problem.topology = *parseTopology("2xA100-40GB");
  plan = makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {0}),
                            makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  plan.shards[0].tier = Tier::Dram;
  plan.shards[0].cache.rows = 96;
  EXPECT_EQ(errors(), "");
  // The rows, and what moves them.
  int64_t needed = planMemory(problem, plan.shards).hostBytes[0];
  EXPECT_GT(needed, 64000);
  problem.topology.hosts[0].memoryBytes = needed - 1;
  EXPECT_EQ(errors(), "host 0: needs 8.1 MiB, has 8.1 MiB");
  problem.topology.hosts[0].memoryBytes = needed;
  EXPECT_EQ(errors(), "");
  problem.topology.hosts[0].memoryBytes = kGiB;
  plan.shards[0].tier = Tier::Ssd;
  EXPECT_EQ(errors(), "");
  EXPECT_EQ(planMemory(problem, plan.shards).diskBytes,
            std::vector<int64_t>{64000});
  problem.topology.hosts[0].disk.bytes = 63999;
  EXPECT_EQ(errors(),
            "host 0: needs 62.5 KiB of disk for tier ssd, has 62.5 KiB");
  problem.topology.hosts[0].disk.bytes = 64000;
  EXPECT_EQ(errors(), "");
}

TEST_F(VerifyTest, PinsAndForbids) {
  problem.constraints.pins = {{1, {0}}};
  EXPECT_EQ(errors(), "table 'b': a pin keeps it off device 1, where it has a "
                      "shard");
  problem.constraints.pins = {{0, {0, 1}}};
  problem.constraints.forbids = {{1, {1}}};
  EXPECT_EQ(errors(), "table 'b': is forbidden on device 1, where it has a "
                      "shard");
}

TEST_F(VerifyTest, SetsOfTables) {
  problem.constraints.coLocate = {{0, 1}};
  EXPECT_EQ(errors(), "table 'b': must be on the same devices as table 'a' "
                      "(co-located)");
  problem.constraints.coLocate = {};
  problem.constraints.separate = {{0, 1}};
  EXPECT_EQ(errors(), "table 'b': shares device 1 with table 'a', from which "
                      "it is separated");
}

TEST_F(VerifyTest, KindsAndWidths) {
  problem.constraints.tables = {{0, {ShardingKind::ColumnWise}, 1}};
  EXPECT_EQ(errors(), "table 'a': is sharded row_column, which its allowed "
                      "kinds do not include");
  problem.constraints.tables = {{0, {ShardingKind::RowColumn}, 8}};
  EXPECT_EQ(errors(), "shard 'a_3': width 4 is below the table's minimum of 8");
  problem.constraints.tables = {{1, {ShardingKind::TableWise}, 64}};
  EXPECT_EQ(errors(), "");
}

TEST_F(VerifyTest, FixedShardsMustStay) {
  problem.constraints.fixedShards = {plan.shards[2]};
  EXPECT_EQ(errors(), "");
  plan.shards[2].devices = {0};
  EXPECT_EQ(errors(),
            "shard 'a_2': was written by hand and must be in the "
            "plan as it is: table 'a', rows [400, 1000) cols [0, 12)");
}

class TorchRecTest : public testing::Test {
protected:
  std::string errors(std::vector<Shard> shardsOfA) {
    shardsOfA.push_back(makeShard("b_0", "b", 0, 500, 0, 8, {1}));
    return text(verify(makePlan(problem, std::move(shardsOfA)), problem));
  }
  static ShardingProblem makeProblem() {
    ShardingProblem problem = twoTables("2x2xCPU@1GiB");
    problem.target = Target::TorchRec19;
    problem.tables[0].rows = 1001;
    return problem;
  }

  ShardingProblem problem = makeProblem();
};

TEST_F(TorchRecTest, RowWiseIsEqualBlocksOnAllDevices) {
  // ceil(1001 / 4) = 251.
  EXPECT_EQ(errors({makeShard("a_0", "a", 0, 251, 0, 16, {0}),
                    makeShard("a_1", "a", 251, 502, 0, 16, {1}),
                    makeShard("a_2", "a", 502, 753, 0, 16, {2}),
                    makeShard("a_3", "a", 753, 1001, 0, 16, {3})}),
            "");
  EXPECT_EQ(errors({makeShard("a_0", "a", 0, 250, 0, 16, {0}),
                    makeShard("a_1", "a", 250, 502, 0, 16, {1}),
                    makeShard("a_2", "a", 502, 753, 0, 16, {2}),
                    makeShard("a_3", "a", 753, 1001, 0, 16, {3})}),
            "table 'a': target torchrec-1.9: row-wise over all devices block 1 "
            "must begin at row 251, shard 'a_1' begins at 250");
  EXPECT_EQ(errors({makeShard("a_0", "a", 0, 251, 0, 16, {0}),
                    makeShard("a_1", "a", 251, 502, 0, 16, {2}),
                    makeShard("a_2", "a", 502, 753, 0, 16, {1}),
                    makeShard("a_3", "a", 753, 1001, 0, 16, {3})}),
            "table 'a': target torchrec-1.9: row-wise over all devices block 1 "
            "must be on device 1, shard 'a_1' is on 2");
  EXPECT_EQ(errors({makeShard("a_0", "a", 0, 501, 0, 16, {0}),
                    makeShard("a_1", "a", 501, 1001, 0, 16, {2})}),
            "table 'a': target torchrec-1.9: row-wise over all devices must be "
            "4 blocks of ceil(rows / devices) = 251 rows, got 2 shards");
}

TEST_F(TorchRecTest, TableRowWiseIsOneWholeGroup) {
  EXPECT_EQ(errors({makeShard("a_0", "a", 0, 501, 0, 16, {2}),
                    makeShard("a_1", "a", 501, 1001, 0, 16, {3})}),
            "");
  EXPECT_THAT(errors({makeShard("a_0", "a", 0, 501, 0, 16, {3}),
                      makeShard("a_1", "a", 501, 1001, 0, 16, {2})}),
              HasSubstr("table-row-wise over one group block 0 must be on "
                        "device 2"));
}

TEST_F(TorchRecTest, FewRowsLeaveDevicesWithoutABlock) {
  std::vector<Shard> blocks = {makeShard("a_0", "a", 0, 2, 0, 16, {0}),
                               makeShard("a_1", "a", 2, 4, 0, 16, {1}),
                               makeShard("a_2", "a", 4, 5, 0, 16, {2})};
  problem.tables[0].rows = 5;
  EXPECT_EQ(errors(blocks),
            "table 'a': target torchrec-1.9: row-wise over all devices on the "
            "CPU must give each of the 4 devices rows; blocks of 2 leave some "
            "of them none of the 5 rows");
  problem.topology = *parseTopology("2x2xH200");
  EXPECT_EQ(errors(blocks), "");
}

TEST_F(TorchRecTest, ColumnsOnOneDeviceHaveOneWidth) {
  EXPECT_EQ(errors({makeShard("a_0", "a", 0, 1001, 0, 8, {0}),
                    makeShard("a_1", "a", 0, 1001, 8, 12, {1}),
                    makeShard("a_2", "a", 0, 1001, 12, 16, {0})}),
            "table 'a': target torchrec-1.9: column shards on one device must "
            "have equal widths; on device 0 shard 'a_0' has 8, 'a_2' 4");
  EXPECT_EQ(errors({makeShard("a_0", "a", 0, 1001, 0, 4, {0}),
                    makeShard("a_1", "a", 0, 1001, 4, 12, {1}),
                    makeShard("a_2", "a", 0, 1001, 12, 16, {0})}),
            "");
}

TEST_F(TorchRecTest, ColumnsWithoutPoolingHaveOneWidth) {
  problem.features[0].pooling = Pooling::None;
  EXPECT_EQ(errors({makeShard("a_0", "a", 0, 1001, 0, 4, {0}),
                    makeShard("a_1", "a", 0, 1001, 4, 16, {1})}),
            "table 'a': target torchrec-1.9: column shards of a table without "
            "pooling must have equal widths, 'a_0' has 4, 'a_1' 12");
  EXPECT_EQ(errors({makeShard("a_0", "a", 0, 1001, 0, 8, {0}),
                    makeShard("a_1", "a", 0, 1001, 8, 16, {1})}),
            "");
}

/// TorchRec's modules of rows know no table-row-wise.
TEST_F(TorchRecTest, RowWiseAllowsNoTableRowWise) {
  problem.constraints.tables = {{0, {ShardingKind::RowWise}}};
  std::vector<Shard> blocks = {makeShard("a_0", "a", 0, 501, 0, 16, {2}),
                               makeShard("a_1", "a", 501, 1001, 0, 16, {3})};
  EXPECT_EQ(errors(blocks), "table 'a': is sharded table_row_wise, which its "
                            "allowed kinds do not include");
  problem.target = Target::Native;
  EXPECT_EQ(errors(blocks), "");
}

TEST_F(TorchRecTest, OneKindPerTable) {
  EXPECT_THAT(errors({makeShard("a_0", "a", 0, 500, 0, 8, {0}),
                      makeShard("a_1", "a", 0, 500, 8, 16, {1}),
                      makeShard("a_2", "a", 500, 1001, 0, 8, {2}),
                      makeShard("a_3", "a", 500, 1001, 8, 16, {3})}),
              HasSubstr("rows and columns of one table cannot both be split"));
}

TEST_F(TorchRecTest, WidthsAreMultiplesOfFour) {
  problem.tables[0].dim = 18;
  EXPECT_EQ(errors({makeShard("a_0", "a", 0, 1001, 0, 18, {0})}),
            "table 'a': target torchrec-1.9: widths must be multiples of 4, "
            "shard 'a_0' has 18");
}

TEST_F(TorchRecTest, ColumnShardsOfRowWiseOptimizersArePerShard) {
  problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  std::vector<Shard> halves = {makeShard("a_0", "a", 0, 1001, 0, 8, {0}),
                               makeShard("a_1", "a", 0, 1001, 8, 16, {1})};
  EXPECT_THAT(errors(halves), HasSubstr("set optimizer_semantics = per_shard"));
  problem.optimizerSemantics = OptimizerSemantics::PerShard;
  EXPECT_EQ(errors(halves), "");
}

TEST(VerifyScaleTest, ManyShardsAndHugeTables) {
  // 2e9 rows in 4096 x 4 pieces on 256 devices, and 2000 small tables.
  ShardingProblem problem;
  problem.batch.globalSize = 65536;
  problem.topology = *parseTopology("256xH200@192GiB");
  addTable(problem, makeTable("huge", 2'000'000'000, 256), 1);
  std::vector<Shard> shards;
  for (int64_t i = 0; i < 4096; ++i)
    for (int64_t j = 0; j < 4; ++j)
      shards.push_back(makeShard(
          "huge_" + std::to_string(i) + "_" + std::to_string(j), "huge",
          2'000'000'000 * i / 4096, 2'000'000'000 * (i + 1) / 4096, 64 * j,
          64 * (j + 1), {static_cast<int>((i * 4 + j) % 256)}));
  for (int i = 0; i < 2000; ++i) {
    std::string name = numbered("t", i);
    addTable(problem, makeTable(name, 1000, 16), 1);
    shards.push_back(makeShard(name + "_0", name, 0, 1000, 0, 16, {i % 256}));
  }
  ShardingPlan plan = makePlan(problem, shards);
  EXPECT_EQ(text(verify(plan, problem)), "");
  plan.shards[9000].rowEnd -= 1;
  EXPECT_THAT(text(verify(plan, problem)), HasSubstr("no shard covers rows"));
}

} // namespace
