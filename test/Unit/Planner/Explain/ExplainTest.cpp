//===- ExplainTest.cpp - Tests of what a plan says about itself -----------===//

#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"

#include <gmock/gmock.h>

using namespace neuroshard;
using namespace neuroshard::test;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

std::vector<std::string> explanationOf(const ShardingProblem &problem,
                                       Algorithm algorithm) {
  SearchOptions options;
  options.algorithm = algorithm;
  options.threads = 1;
  auto result = search(problem, *makeRooflineModel(), options);
  EXPECT_TRUE(result) << result.error().str();
  return result ? result->explanation : std::vector<std::string>();
}

TEST(ExplainTest, ACutForSpeedSaysWhatTheWholeWouldCost) {
  ShardingProblem problem = twoTables();
  problem.batch.globalSize = 65536;
  addTable(problem, makeTable("big", 100000, 128), 40);
  EXPECT_THAT(explanationOf(problem, Algorithm::Default),
              Contains(AllOf(HasSubstr("table 'big' is cut into "),
                             ContainsRegex("; whole, a step would take [0-9.]+ "
                                           "ms \\(\\+[0-9.]+ %\\)"))));
}

TEST(ExplainTest, ACutForMemorySaysWhatTheWholeNeeds) {
  ShardingProblem problem = twoTables("2xCPU@1GiB");
  // 1.2 GiB of weights.
  addTable(problem, makeTable("large", 2516582, 128), 1);
  EXPECT_THAT(explanationOf(problem, Algorithm::Default),
              Contains(AllOf(HasSubstr("table 'large' is cut into "),
                             HasSubstr("; whole, it needs 1.2 GiB, and no "
                                       "device has more than"))));
}

TEST(ExplainTest, ATableOfWholeAndCutRowPiecesIsCutBoth) {
  ShardingProblem problem = twoTables();
  problem.constraints.fixedShards = {
      makeShard("a0", "a", 0, 500, 0, 16, {0}),
      makeShard("a1", "a", 500, 1000, 0, 8, {0}),
      makeShard("a2", "a", 500, 1000, 8, 16, {1})};
  EXPECT_THAT(explanationOf(problem, Algorithm::Default),
              Contains(HasSubstr("table 'a' is cut into 3 shards by rows and "
                                 "columns; its shards are written by hand")));
}

TEST(ExplainTest, RulesAreNamed) {
  ShardingProblem problem = twoTables();
  problem.constraints.tables = {{0, {ShardingKind::RowWise}, 1},
                                {1, {ShardingKind::Replicated}, 1}};
  std::vector<std::string> lines = explanationOf(problem, Algorithm::Default);
  EXPECT_THAT(
      lines, Contains(AllOf(HasSubstr("table 'a' is cut into 2 shards by rows"),
                            HasSubstr("the rules for the table leave no other "
                                      "form"))));
  EXPECT_THAT(lines, Contains(HasSubstr("table 'b' is on every device; the "
                                        "rules for the table")));
}

TEST(ExplainTest, WholeTablesNeedNoWords) {
  ShardingProblem problem = twoTables();
  std::vector<std::string> lines = explanationOf(problem, Algorithm::Size);
  EXPECT_THAT(lines, Not(Contains(HasSubstr("is cut into"))));
  EXPECT_THAT(lines, Contains(ContainsRegex(
                         "costliest of 1 shards on device [01], which computes "
                         "longest: 'a' \\(1000 x 16, alone [0-9.]+ ms\\)")));
  EXPECT_THAT(lines, Contains(ContainsRegex(
                         "bottleneck: device [01] in forward compute .*device "
                         "[01] in the backward exchange")));
}

TEST(ExplainTest, CoLocatedTablesAreNamedTogether) {
  ShardingProblem problem = twoTables("2xCPU@1GiB");
  addTable(problem, makeTable("large", 2516582, 128), 1);
  addTable(problem, makeTable("mate", 1000, 64), 1);
  problem.constraints.coLocate = {{2, 3}};
  EXPECT_THAT(
      explanationOf(problem, Algorithm::Default),
      AllOf(Contains(ContainsRegex("table 'large' is cut into .*; whole "
                                   "with 'mate', it needs 1.2 GiB")),
            Contains(ContainsRegex("table 'mate' is cut into .*; whole "
                                   "with 'large', it needs"))));
}

TEST(ExplainTest, WithSnapshotsTheClaimIsTheMeanOverThem) {
  ShardingProblem problem = twoTables();
  problem.batch.globalSize = 65536;
  addTable(problem, makeTable("big", 100000, 128), 40);
  problem.snapshots = {{"day", 1, {{2, 60, 0, 1}}, {}},
                       {"night", 1, {{2, 10, 0, 1}, {0, 80, 0, 1}}, {}}};
  auto model = makeRooflineModel();
  SearchOptions options;
  options.threads = 1;
  auto result = search(problem, *model, options);
  ASSERT_TRUE(result);
  double claimed = 0, percent = 0;
  for (const std::string &line : result->explanation)
    if (line.find("table 'big' is cut into") == 0)
      std::sscanf(line.substr(line.find("would take")).c_str(),
                  "would take %lf ms (%lf %%)", &claimed, &percent);
  // The same by hand: the rest as it is, the whole on either device.
  double least = 1e300;
  for (int device : {0, 1}) {
    ShardingPlan plan = result->plan;
    std::erase_if(plan.shards,
                  [](const Shard &shard) { return shard.table == "big"; });
    plan.shards.push_back(makeShard("big", "big", 0, 100000, 0, 128, {device}));
    least = std::min(least, evaluate(problem, plan, *model, {}).costMs);
  }
  EXPECT_NEAR(claimed, least, 0.02 * least);
  // So is the share by which it is more.
  double now = result->breakdown.costMs;
  double ofSummary =
      evaluate(summarized(problem), result->plan, *model, {}).costMs;
  ASSERT_GT(std::abs(now / ofSummary - 1), 0.005);
  EXPECT_NEAR(percent, 100 * (claimed / now - 1), 0.1);
}

TEST(ExplainTest, ManyTablesShareLines) {
  ShardingProblem problem = twoTables();
  for (int i = 0; i < 100; ++i) {
    addTable(problem, makeTable(numbered("t", i), 100, 8), 1);
    problem.constraints.tables.push_back({i + 2, {ShardingKind::RowWise}, 1});
  }
  EXPECT_THAT(explanationOf(problem, Algorithm::Dim),
              Contains("36 tables (t64, t65, t66, t67, ...) cut into 2 shards "
                       "by rows: 50 + 50 rows"));
}

} // namespace
