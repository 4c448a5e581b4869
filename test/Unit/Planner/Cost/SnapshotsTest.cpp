//===- SnapshotsTest.cpp - Tests of statistics of several periods ---------===//

#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"

#include <gmock/gmock.h>

using namespace neuroshard;
using namespace neuroshard::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

/// Feature a at 4 ids per sample by day and 12 by night, b at 1 and 0.
ShardingProblem dayAndNight() {
  ShardingProblem problem = twoTables();
  problem.snapshots = {{"day", 3, {}, {}},
                       {"night", 1, {{0, 12, 20, 1}, {1, 1, 0, 0}}, {}}};
  return problem;
}

TEST(SnapshotsTest, ASnapshotReplacesWhatItLists) {
  ShardingProblem problem = dayAndNight();
  EXPECT_THAT(snapshotShares(problem), ElementsAre(0.75, 0.25));
  ShardingProblem night = atSnapshot(problem, 1);
  EXPECT_TRUE(night.snapshots.empty());
  EXPECT_EQ(night.features[0].meanPooling, 12);
  EXPECT_EQ(night.features[0].p99Pooling, 20);
  EXPECT_EQ(night.features[1].presence, 0);
  EXPECT_EQ(atSnapshot(problem, 0).features, problem.features);
}

TEST(SnapshotsTest, TheSummaryHasMeansAndTheLargestP99) {
  ShardingProblem summary = summarized(dayAndNight());
  EXPECT_DOUBLE_EQ(summary.features[0].meanPooling, 0.75 * 4 + 0.25 * 12);
  EXPECT_EQ(summary.features[0].p99Pooling, 20);
  EXPECT_DOUBLE_EQ(summary.features[1].presence, 0.75);
  EXPECT_DOUBLE_EQ(summary.features[1].meanPooling, 1);
  EXPECT_EQ(summary.features[1].p99Pooling, 1);
  ShardingProblem plain = twoTables();
  EXPECT_EQ(summarized(plain), plain);
}

TEST(SnapshotsTest, HistogramsAreAveragedWhereTheBatchIsTheSame) {
  ShardingProblem problem = dayAndNight();
  AccessStatistics once, often;
  once.batch = often.batch = 64;
  once.reuse[0] = 1;
  often.reuse[3] = 1;
  problem.tables[0].access = once;
  problem.snapshots[1].tables = {{0, often}};
  const AccessStatistics mean = *summarized(problem).tables[0].access;
  EXPECT_DOUBLE_EQ(mean.reuse[0], 0.75);
  EXPECT_DOUBLE_EQ(mean.reuse[3], 0.25);
  problem.snapshots[1].tables[0].access.batch = 128;
  EXPECT_EQ(*summarized(problem).tables[0].access, once);
}

TEST(SnapshotsTest, CostIsTheMeanAndTheWorstIsKnown) {
  ShardingProblem problem = dayAndNight();
  auto model = makeRooflineModel();
  ShardingPlan plan =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {0}),
                         makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  double day = evaluate(atSnapshot(problem, 0), plan, *model, {}).costMs;
  double night = evaluate(atSnapshot(problem, 1), plan, *model, {}).costMs;
  CostBreakdown cost = evaluate(problem, plan, *model, {});
  EXPECT_GT(night, day);
  EXPECT_DOUBLE_EQ(cost.costMs, 0.75 * day + 0.25 * night);
  EXPECT_DOUBLE_EQ(cost.worstMs(), night);
  ASSERT_EQ(cost.snapshots.size(), 2u);
  EXPECT_EQ(cost.snapshots[1].name, "night");
  EXPECT_DOUBLE_EQ(cost.snapshots[1].share, 0.25);
  EXPECT_DOUBLE_EQ(cost.inputMs + cost.maxForwardMs +
                       cost.exposedForwardCommunicationMs + cost.denseMs +
                       cost.backwardCommunicationMs + cost.maxBackwardMs,
                   cost.costMs);
}

TEST(SnapshotsTest, MemoryIsThatOfTheWorst) {
  ShardingProblem problem = dayAndNight();
  ShardingProblem worst = twoTables();
  worst.features[0].p99Pooling = 20;
  std::vector<Shard> shards = {makeShard("a_0", "a", 0, 1000, 0, 16, {0}),
                               makeShard("b_0", "b", 0, 500, 0, 8, {1})};
  EXPECT_EQ(planMemory(problem, shards).devices,
            planMemory(worst, shards).devices);
  int64_t needed = planMemory(worst, shards).devices[0].peakBytes();
  problem.topology.devices[0].memoryBytes = needed;
  EXPECT_TRUE(verify(makePlan(problem, shards), problem).empty());
  problem.topology.devices[0].memoryBytes = needed - 1;
  EXPECT_THAT(text(verify(makePlan(problem, shards), problem)),
              HasSubstr("device 0"));
}

TEST(SnapshotsTest, TheSearchPlansForTheMean) {
  ShardingProblem problem = dayAndNight();
  auto model = makeRooflineModel();
  auto result = search(problem, *model, {});
  ASSERT_TRUE(result);
  EXPECT_TRUE(verify(result->plan, problem).empty());
  EXPECT_EQ(result->breakdown.costMs,
            evaluate(problem, result->plan, *model, {}).costMs);
  EXPECT_LE(result->lowerBoundMs, result->breakdown.costMs);
}

TEST(SnapshotsTest, BadSnapshotsAreRefused) {
  ShardingProblem problem = dayAndNight();
  problem.snapshots[1].name = "day";
  problem.snapshots[0].weight = 0;
  problem.snapshots[1].features[1].feature = 0;
  problem.snapshots[1].features[0].p99Pooling = 1;
  problem.snapshots[0].tables = {{7, {}}};
  std::string errors = text(check(problem));
  for (const char *message :
       {"snapshots[1].name", "snapshots[0].weight: expected a number above 0",
        "snapshots[1].features[1].feature: listed twice",
        "snapshots[1].features[0].p99_pooling: expected at least mean_pooling "
        "x presence = 12",
        "snapshots[0].tables[0].table"})
    EXPECT_THAT(errors, HasSubstr(message));
}

TEST(SnapshotsTest, TheirNumberIsLimited) {
  ShardingProblem problem = twoTables();
  for (int i = 0; i < 256; ++i)
    problem.snapshots.push_back({std::to_string(i), 1, {}, {}});
  EXPECT_EQ(text(check(problem)), "");
  problem.snapshots.push_back({"one more", 1, {}, {}});
  EXPECT_THAT(text(check(problem)),
              HasSubstr("snapshots: expected at most 256, got: 257"));
}

TEST(SnapshotsTest, JsonReadsWhatItWrites) {
  ShardingProblem problem = dayAndNight();
  AccessStatistics access;
  access.batch = 64;
  access.reuse[0] = 1;
  problem.snapshots[0].tables = {{1, access}};
  auto again = parseWorkload(writeWorkload(problem));
  ASSERT_TRUE(again) << text(again.error());
  EXPECT_EQ(again->snapshots, problem.snapshots);
}

TEST(SnapshotsTest, AnEntryOfAFileLacksWhatIsAsInTheWorkload) {
  std::string json = writeWorkload(twoTables());
  json.replace(json.rfind('}'), 1,
               R"(, "snapshots": [{"name": "peak", "features":
                   [{"feature": "a_id", "presence": 0.5}]}]})");
  auto problem = parseWorkload(json);
  ASSERT_TRUE(problem) << text(problem.error());
  EXPECT_EQ(problem->snapshots,
            (std::vector<Snapshot>{{"peak", 1, {{0, 4, 0, 0.5}}, {}}}));
  json.replace(json.rfind("a_id"), 4, "what");
  EXPECT_THAT(text(parseWorkload(json).error()),
              HasSubstr("snapshots[0].features[0].feature: unknown feature "
                        "'what'"));
}

} // namespace
