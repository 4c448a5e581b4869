//===- GroupSearchTest.cpp - Plans over groups of devices -----------------===//

#include "Groups/GroupSearch.h"
#include "Cost/RelayLoads.h"
#include "Groups/GroupModel.h"
#include "Groups/GroupSplits.h"
#include "InitialUnits/InitialUnits.h"
#include "Search/DefaultSearch.h"
#include "Searches.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::Contains;
using testing::HasSubstr;

namespace {

constexpr double kTiny = 1e-12;

SearchOptions fewSteps() {
  SearchOptions options;
  options.threads = 1;
  return options;
}

// A group with a table does what each of its devices does with a part of it.
TEST(GroupModelTest, IsTheModelOfEvenShares) {
  ShardingProblem problem = dlrm("2x4xH200");
  std::unique_ptr<CostModel> model = makeRooflineModel();
  GroupModel groups(*model, problem.topology, 4);
  const Table &table = problem.tables[20];
  std::vector<int> features = featuresOfTables(problem)[20];
  Shard whole{.name = "",
              .table = table.name,
              .rowEnd = table.rows,
              .colEnd = table.dim,
              .devices = {0}};
  Shard quarter = whole;
  quarter.rowEnd /= 4;
  ShardWork all = describeShard(problem, 20, features, whole, false);
  ShardWork part = describeShard(problem, 20, features, quarter, false);
  // Each device sends a quarter of the results that relays add up.
  part.outputRows /= 4;
  part.updateGradientRows /= 4;
  const DeviceClass *deviceClass = findDeviceClass("H200");
  ShardSet ofGroup{deviceClass, {&all}}, ofDevice{deviceClass, {&part}};
  ComputeMs group, device;
  groups.computeMs({&ofGroup, 1}, {&group, 1});
  model->computeMs({&ofDevice, 1}, {&device, 1});
  EXPECT_NEAR(group.forwardMs, device.forwardMs, kTiny);
  EXPECT_NEAR(group.backwardMs, device.backwardMs, kTiny);
  // As the search asks for it.
  std::vector<double> sum(static_cast<size_t>(groups.sumEmbedding()->size()));
  groups.sumEmbedding()->embed(all, *deviceClass, sum);
  ComputeMs embedded = groups.sumEmbedding()->head(sum, 1, *deviceClass);
  EXPECT_NEAR(embedded.forwardMs, group.forwardMs, kTiny);
  EXPECT_NEAR(embedded.backwardMs, group.backwardMs, kTiny);
}

TEST(GroupModelTest, SpreadsBytesOverAGroup) {
  Topology topology = *parseTopology("2x4xH200");
  std::unique_ptr<CostModel> model = makeRooflineModel();
  GroupModel groups(*model, topology, 4);
  Topology flat = *parseTopology("2xH200");
  Traffic ofGroups{&flat, {8, 0}, {4e6, 0}, {2e6, 2e6}};
  Traffic ofDevices{&topology,
                    {2, 2, 2, 2, 0, 0, 0, 0},
                    {1e6, 1e6, 1e6, 1e6, 0, 0, 0, 0},
                    std::vector<double>(8, 5e5)};
  std::vector<double> times =
      groups.communicationMs(ofGroups, {}, Direction::Forward);
  std::vector<double> expected =
      model->communicationMs(ofDevices, {}, Direction::Forward);
  EXPECT_EQ(times, (std::vector<double>{expected[0], expected[4]}));
}

// Every part is on its group, and covers it evenly.
TEST(GroupSplitsTest, KeepPartsInTheirGroups) {
  ShardingProblem problem = dlrm("2x4xH200");
  std::unique_ptr<CostModel> model = makeRooflineModel();
  SearchOptions options = fewSteps();
  SearchContext context(problem, *model, options, RowWidths::Free);
  std::vector<Shard> parts;
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    const Table &table = problem.tables[i];
    parts.push_back({.name = "",
                     .table = table.name,
                     .rowEnd = table.rows,
                     .colEnd = table.dim,
                     .devices = {int(i % 2)}});
  }
  ShardingPlan none;
  none.deviceCount = 8;
  int64_t evaluations = 0;
  ShardingPlan plan = *splitInGroups(context, 4, none, parts, evaluations);
  EXPECT_GT(evaluations, 10);
  std::map<std::string, int64_t> cells;
  std::set<int> ofLargest;
  for (const Shard &shard : plan.shards) {
    int table = context.tableIndex(shard.table);
    EXPECT_EQ(shard.devices.front() / 4, table % 2) << shard.table;
    EXPECT_EQ(shard.route, Route::Relay);
    cells[shard.table] += shard.rows() * shard.width();
    if (table == 20)
      ofLargest.insert(shard.devices.front());
  }
  for (const Table &table : problem.tables)
    EXPECT_EQ(cells[table.name], table.rows * table.dim) << table.name;
  EXPECT_EQ(ofLargest, (std::set<int>{0, 1, 2, 3}));
}

TEST(GroupSearchTest, FindsPlansThatNeedRelays) {
  ShardingProblem problem = dlrm("8x8xH200");
  SearchResult result =
      test::mustPlan(problem, *makeRooflineModel(), fewSteps());
  EXPECT_THAT(result.explanation, Contains(HasSubstr("over groups")));
  EXPECT_LT(result.breakdown.costMs, 6);
  EXPECT_GE(result.breakdown.costMs, result.lowerBoundMs);
}

TEST(GroupSearchTest, NoneWithoutGroupsOrWithShardsByHand) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  auto count = [&](const ShardingProblem &problem) {
    SearchOptions options = fewSteps();
    SearchContext context(problem, *model, options, RowWidths::Free);
    int64_t evaluations = 0;
    return searchByGroups(context, searchDefault, {RowWidths::Free, 1, 5000},
                          evaluations)
        .size();
  };
  EXPECT_EQ(count(dlrm("8xH200")), 0U);
  ShardingProblem problem = dlrm("2x4xH200");
  EXPECT_GT(count(problem), 0U);
  problem.constraints.fixedShards.push_back({.name = "",
                                             .table = problem.tables[3].name,
                                             .rowEnd = problem.tables[3].rows,
                                             .colEnd = problem.tables[3].dim,
                                             .devices = {0}});
  EXPECT_EQ(count(problem), 0U);
  problem.constraints.fixedShards.clear();
  problem.topology.devices[5].memoryBytes /= 2;
  EXPECT_EQ(count(problem), 0U);
  problem = dlrm("2x4xH200");
  problem.target = Target::TorchRec19;
  EXPECT_EQ(count(problem), 0U);
}

// Rules about devices hold in plans over groups, too.
TEST(GroupSearchTest, FollowsRulesAboutDevices) {
  ShardingProblem problem = dlrm("2x4xH200");
  std::unique_ptr<CostModel> model = makeRooflineModel();
  Constraints &rules = problem.constraints;
  rules.pins.push_back({3, {6}});
  rules.forbids.push_back({1, {0, 5}});
  rules.coLocate.push_back({5, 8, 12});
  rules.separate.push_back({16, 18, 25});
  SearchOptions options = fewSteps();
  SearchContext context(problem, *model, options, RowWidths::Free);
  int64_t evaluations = 0;
  std::vector<ShardingPlan> plans = searchByGroups(
      context, searchDefault, {RowWidths::Free, 1, 5000}, evaluations);
  ASSERT_EQ(plans.size(), 2U); // evenly split, and placed by the search
  for (ShardingPlan &plan : plans) {
    for (size_t i = 0; i < plan.shards.size(); ++i)
      plan.shards[i].name = std::to_string(i);
    for (const Diagnostic &broken : verify(plan, problem))
      ADD_FAILURE() << broken.where << ": " << broken.message;
  }
  SearchResult result = test::mustPlan(problem, *model, options);
  EXPECT_THAT(result.explanation, Contains(HasSubstr("over groups")));
}

} // namespace
