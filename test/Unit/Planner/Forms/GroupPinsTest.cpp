//===- GroupPinsTest.cpp - Tables whose rows stay inside one group --------===//

#include "Forms/GroupPins.h"
#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

/// `count` equal tables with much work on two nodes of
/// four, each whole or cut by rows inside a node.
ShardingProblem hotTables(int count, const std::string &topology = "2x4xH200") {
  ShardingProblem problem;
  problem.batch.globalSize = 65536;
  problem.topology = *parseTopology(topology);
  problem.memoryModel = MemoryModel::WeightsOnly;
  for (int i = 0; i < count; ++i) {
    addTable(problem, makeTable(numbered("t", i), 4'000'000, 64), 40);
    problem.constraints.tables.push_back(
        {i, {ShardingKind::TableWise, ShardingKind::TableRowWise}});
  }
  return problem;
}

std::optional<ShardingProblem> grouped(const ShardingProblem &problem) {
  return withGroupPins(problem, *makeRooflineModel());
}

TEST(RowGroupsTest, EqualTablesAreSpreadOverTheGroups) {
  auto result = grouped(hotTables(4));
  ASSERT_TRUE(result);
  ASSERT_EQ(result->constraints.pins.size(), 4u);
  const std::vector<int> first = {0, 1, 2, 3}, second = {4, 5, 6, 7};
  int inFirst = 0;
  for (const PinConstraint &pin : result->constraints.pins) {
    EXPECT_TRUE(pin.devices == first || pin.devices == second);
    inFirst += pin.devices == first;
  }
  EXPECT_EQ(inFirst, 2);
}

TEST(RowGroupsTest, AGroupOfTwiceTheDevicesGetsTwiceTheTables) {
  auto result = grouped(hotTables(6, "8+4xH200"));
  ASSERT_TRUE(result);
  EXPECT_EQ(std::ranges::count_if(
                result->constraints.pins,
                [](const PinConstraint &pin) { return pin.devices[0] == 0; }),
            4);
}

TEST(RowGroupsTest, ForbiddenDevicesStayForbidden) {
  ShardingProblem problem = hotTables(1);
  problem.constraints.forbids = {{0, {0, 1, 2, 3, 5}}};
  auto result = grouped(problem);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->constraints.pins.front().devices,
            (std::vector<int>{4, 6, 7}));
}

TEST(RowGroupsTest, OnlyTablesThatNeedAGroupGetOne) {
  EXPECT_FALSE(grouped(hotTables(4, "8xH200")));
  ShardingProblem anywhere = hotTables(1);
  anywhere.constraints.tables[0].allowedKinds.push_back(ShardingKind::RowWise);
  EXPECT_FALSE(grouped(anywhere));
  ShardingProblem torchRec = hotTables(1);
  torchRec.target = Target::TorchRec19;
  EXPECT_FALSE(grouped(torchRec));
  ShardingProblem pinned = hotTables(1);
  pinned.constraints.pins = {{0, {3}}};
  EXPECT_FALSE(grouped(pinned));
  ShardingProblem together = hotTables(2);
  together.constraints.coLocate = {{0, 1}};
  EXPECT_FALSE(grouped(together));
  // Its cost is negligible beside that of the hot tables.
  ShardingProblem small = hotTables(12);
  addTable(small, makeTable("small", 100, 4), 1);
  small.constraints.tables.push_back({12, {ShardingKind::TableRowWise}});
  EXPECT_EQ(grouped(small)->constraints.pins.size(), 12u);
}

TEST(RowGroupsTest, TheSearchCutsInsideGroupsWhereThatIsFaster) {
  ShardingProblem problem = hotTables(2);
  auto model = makeRooflineModel();
  SearchOptions options;
  options.evaluationBudget = 20'000;
  auto result = search(problem, *model, options);
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_TRUE(verify(result->plan, problem).empty());
  std::vector<int> group = groupOfDevices(problem.topology.levels.back());
  std::set<int> used;
  for (const Table &table : problem.tables) {
    std::vector<const Shard *> shards;
    for (const Shard &shard : result->plan.shards)
      if (shard.table == table.name)
        shards.push_back(&shard);
    EXPECT_EQ(classify(table, shards, group), ShardingKind::TableRowWise);
    used.insert(group[static_cast<size_t>(shards.front()->devices[0])]);
  }
  EXPECT_EQ(used.size(), 2u);
  // Uncut, they take as long as one of them.
  ShardingProblem whole = problem;
  for (TableConstraint &constraint : whole.constraints.tables)
    constraint.allowedKinds = {ShardingKind::TableWise};
  auto slow = search(whole, *model, options);
  ASSERT_TRUE(slow);
  EXPECT_LT(result->breakdown.costMs, 0.6 * slow->breakdown.costMs);
}

TEST(RowGroupsTest, TablesLargerThanADeviceAreCutInsideTheirGroup) {
  ShardingProblem problem = hotTables(3);
  // 977 MiB each, of which a node of four devices holds two.
  for (Device &device : problem.topology.devices)
    device.memoryBytes = 600 * kMiB;
  SearchOptions options;
  options.evaluationBudget = 5'000;
  auto result = search(problem, *makeRooflineModel(), options);
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_TRUE(verify(result->plan, problem).empty());
}

} // namespace
