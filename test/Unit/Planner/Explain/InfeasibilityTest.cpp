//===- InfeasibilityTest.cpp - Refusals name the limit with numbers -------===//

#include "Support.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

PlanningError refusal(const ShardingProblem &problem,
                      SearchOptions options = {}) {
  auto result = search(problem, *makeRooflineModel(), options);
  if (result) {
    ADD_FAILURE() << "expected no plan";
    return {};
  }
  return result.error();
}

ShardingProblem workload(const std::string &name, const std::string &topology) {
  ShardingProblem problem = *readWorkload(std::string(NEUROSHARD_SOURCE_DIR) +
                                          "/workloads/" + name + ".json");
  problem.topology = *parseTopology(topology);
  return problem;
}

TEST(InfeasibilityTest, ColossalOn128Devices) {
  PlanningError error =
      refusal(workload("synthetic_colossal", "128xH200@192GiB"));
  EXPECT_EQ(error.limit, Limit::DeviceMemory);
  EXPECT_EQ(error.message,
            "the 2002 tables need 44,655 GiB (22,327 GiB weights + 22,327 GiB "
            "optimizer state); available: 128 devices x 192.0 GiB = 24,576 "
            "GiB");
  EXPECT_THAT(error.str(), HasSubstr("table 'g2_t0' needs 3,816 GiB"));
  EXPECT_THAT(error.advice, HasSubstr("use at least 248 such devices"));
}

TEST(InfeasibilityTest, AdamOn8A100sWithDefaultReserves) {
  ShardingProblem problem = workload("mlperf_dlrm_v2", "8xA100-40GB");
  for (Table &table : problem.tables)
    table.optimizer.kind = OptimizerKind::Adam;
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::DeviceMemory);
  EXPECT_THAT(error.message,
              HasSubstr("the 26 tables need 292.1 GiB (97.4 GiB weights + "
                        "194.7 GiB optimizer state), with ids, activations and "
                        "temporaries 293.6 GiB"));
  EXPECT_THAT(error.message,
              HasSubstr("available: 8 devices x 40.0 GiB = 320.0 GiB"));
}

TEST(InfeasibilityTest, PinnedTablesExceedTheirDevices) {
  ShardingProblem problem = twoTables();
  problem.constraints.pins = {{0, {1}}, {1, {1}}};
  problem.topology.devices[1].memoryBytes = 70000;
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::Constraint);
  EXPECT_THAT(error.message, HasSubstr("the tables restricted to devices 1 "
                                       "('a', 'b') need 78.1 KiB"));
  EXPECT_THAT(error.message, HasSubstr("available: 1 devices x 68.4 KiB"));
  EXPECT_THAT(error.advice, HasSubstr("pin them to more devices"));
}

TEST(InfeasibilityTest, TableThatMayNotBeCut) {
  ShardingProblem problem = twoTables();
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.topology = *parseTopology("8xCPU@60000B");
  problem.constraints.tables = {{0, {ShardingKind::TableWise}, 1}};
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::DeviceMemory);
  EXPECT_THAT(error.message,
              HasSubstr("table 'a' needs 62.5 KiB and its constraints allow no "
                        "cut; the roomiest device it may be on, device 0, has "
                        "58.6 KiB"));
  EXPECT_THAT(error.advice, HasSubstr("allow column_wise or row_wise"));
}

TEST(InfeasibilityTest, ReservesAloneAreTooMuch) {
  ShardingProblem problem = twoTables("2xH200@4GiB");
  problem.constraints.reserves = {};
  EXPECT_THAT(refusal(problem).message,
              HasSubstr("what every device holds (reserves, its part of the "
                        "batch) 18.0 GiB"));
}

TEST(InfeasibilityTest, HandWrittenShardsExceedADevice) {
  ShardingProblem problem = twoTables();
  problem.topology.devices[0].memoryBytes = 30000;
  problem.constraints.fixedShards = {makeShard("x", "a", 0, 1000, 0, 16, {0})};
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::DeviceMemory);
  EXPECT_THAT(error.message, HasSubstr("shards that can only be on device 0"));
  EXPECT_THAT(error.message, HasSubstr("it has 29.3 KiB"));
}

TEST(InfeasibilityTest, HandWrittenShardAgainstAForbid) {
  ShardingProblem problem = twoTables();
  problem.constraints.fixedShards = {makeShard("x", "a", 0, 1000, 0, 16, {0})};
  problem.constraints.forbids = {{0, {0}}};
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::Constraint);
  EXPECT_EQ(error.message, "table 'a' must be on device 0, which its pins "
                           "and forbids exclude");
}

TEST(InfeasibilityTest, HostMemory) {
  ShardingProblem problem = twoTables();
  problem.target = Target::TorchRec19;
  problem.topology.hosts[0].memoryBytes = 1000;
  problem.constraints.fixedShards = {makeShard("x", "a", 0, 1000, 0, 16, {0})};
  problem.constraints.fixedShards[0].tier = Tier::Dram;
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::HostMemory);
  EXPECT_EQ(error.message, "shards that can only be there need 62.5 KiB of "
                           "host memory on host 0; there are 1,000 B");
}

TEST(InfeasibilityTest, HostMemoryThatNothingRuns) {
  ShardingProblem problem = twoTables();
  problem.constraints.fixedShards = {makeShard("x", "a", 0, 1000, 0, 16, {0})};
  problem.constraints.fixedShards[0].tier = Tier::Dram;
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::BadInput);
  EXPECT_THAT(error.str(),
              HasSubstr("constraints.fixed_shards[0].tier: a shard in tier "
                        "dram needs a cache for target native"));
}

TEST(InfeasibilityTest, HostsWithoutRoomForLowerTiers) {
  ShardingProblem problem = twoTables("2xA100-40GB");
  problem.topology.hosts[0] = {63999, {.bytes = 63998}};
  problem.constraints.tables = {{.table = 0, .cacheShare = 0.5}};
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::HostMemory);
  // 64,000 bytes of rows, 512 places, three times the ids that are pinned, and
  // 8 MiB through which rows pass.
  EXPECT_EQ(error.message, "tables below device memory need 8.1 MiB of host "
                           "memory on all hosts together; there are 62.5 KiB");
  problem.topology.hosts[0].memoryBytes = 8 * kMiB;
  error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::HostMemory);
  EXPECT_EQ(error.message, "tables below device memory need 8.1 MiB of host "
                           "memory on all hosts together; there are 8.0 MiB");
  // Enough for caches on one of the devices.
  problem.topology.hosts[0].memoryBytes += 80 * 1024;
  auto found = search(problem, *makeRooflineModel(), {});
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(text(verify(found->plan, problem)), "");
  problem.topology.hosts[0].memoryBytes = 32 * kMiB;
  problem.constraints.tables[0].tier = Tier::Ssd;
  error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::Disk);
  EXPECT_EQ(error.message, "tables below device memory need 62.5 KiB of disk "
                           "on all hosts together; there are 62.5 KiB");
}

TEST(InfeasibilityTest, KindsThatCannotBe) {
  ShardingProblem problem = twoTables();
  problem.tables[1].dim = 4;
  problem.constraints.tables = {{1, {ShardingKind::ColumnWise}, 1}};
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::Constraint);
  EXPECT_THAT(error.message, HasSubstr("table 'b' (500 rows x 4 columns) "
                                       "cannot be cut in any of the kinds"));
}

TEST(InfeasibilityTest, TargetThatCannotRunTheTable) {
  ShardingProblem problem = twoTables();
  problem.tables[1].dim = 6;
  problem.target = Target::TorchRec19;
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::Target);
  EXPECT_THAT(error.message, HasSubstr("widths must be multiples of 4"));
}

TEST(InfeasibilityTest, TargetThatCannotCutFewRows) {
  ShardingProblem problem = twoTables("4xCPU@1GiB");
  problem.tables[1].rows = 5;
  problem.target = Target::TorchRec19;
  problem.constraints.tables.push_back({1, {ShardingKind::RowWise}});
  EXPECT_THAT(refusal(problem).message,
              HasSubstr("on the CPU, target torchrec-1.9 cuts by rows only "
                        "tables with rows for every device"));
  problem.topology = *parseTopology("4xH200");
  EXPECT_TRUE(search(problem, *makeRooflineModel(), {}).has_value());
}

TEST(InfeasibilityTest, BaselinesCannotCut) {
  ShardingProblem problem = twoTables();
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.topology = *parseTopology("4xCPU@40000B");
  SearchOptions options;
  options.algorithm = Algorithm::Size;
  PlanningError error = refusal(problem, options);
  EXPECT_EQ(error.limit, Limit::Algorithm);
  EXPECT_THAT(error.message,
              HasSubstr("algorithm 'size' found no placement: 78.1 KiB of "
                        "156.2 KiB are needed; a piece of table 'a' (62.5 KiB) "
                        "fits on no device that may hold it"));
  EXPECT_THAT(error.advice, HasSubstr("algorithm 'default'"));
  EXPECT_TRUE(search(problem, *makeRooflineModel(), {}).has_value());
}

TEST(InfeasibilityTest, CapsOfThePublishedSearch) {
  ShardingProblem problem = twoTables("8xCPU@1GiB");
  SearchOptions options;
  options.algorithm = Algorithm::Published;
  options.published.depth = 1;
  PlanningError error = refusal(problem, options);
  EXPECT_EQ(error.limit, Limit::Algorithm);
  EXPECT_EQ(error.message,
            "algorithm 'published' found no placement under its caps on the "
            "columns of a device, of which the largest is 1.5 times the mean "
            "(grid_end); without caps the tables fit");
}

TEST(InfeasibilityTest, SeparatedTablesNeedEnoughDevices) {
  ShardingProblem problem = twoTables();
  addTable(problem, makeTable("c", 10, 4), 1);
  problem.constraints.separate = {{0, 1, 2}};
  PlanningError error = refusal(problem);
  EXPECT_EQ(error.limit, Limit::Constraint);
  EXPECT_EQ(error.message, "3 tables are to be separated from each other "
                           "('a', 'b', 'c'), there are 2 devices");
}

TEST(InfeasibilityTest, BadInputListsEveryError) {
  ShardingProblem problem = twoTables();
  problem.tables[0].rows = 0;
  SearchOptions options;
  options.published.beamWidth = 0;
  PlanningError error = refusal(problem, options);
  EXPECT_EQ(error.limit, Limit::BadInput);
  EXPECT_THAT(error.message, HasSubstr("tables[0].rows"));
  ASSERT_EQ(error.details.size(), 1u);
  EXPECT_THAT(error.details[0],
              HasSubstr("beam_width: expected a whole number in"));
}

TEST(InfeasibilityTest, OneNumberModelUnderStep) {
  auto result = search(twoTables(), *makeReferenceModel(), {});
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message,
              HasSubstr("cost model 'reference' gives one number"));
}

} // namespace
