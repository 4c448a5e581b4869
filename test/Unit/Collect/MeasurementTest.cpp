//===- MeasurementTest.cpp - Sets of every kind run; others are refused ---===//

#include "neuroshard/Collect/Measurement.h"
#include "neuroshard/Collect/PlanMeasurement.h"
#include "neuroshard/CostModel/Roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using testing::HasSubstr;

namespace {

/// One table of 1000 rows and 16 columns, 64 bags of 3 ids.
MeasuredSet makeSet() {
  MeasuredSet set;
  set.problem.topology = *parseTopology("1xCPU@1GiB");
  set.problem.batch.globalSize = 64;
  Table table;
  table.name = "user";
  table.rows = 1000;
  table.dim = 16;
  set.problem.tables = {table};
  Feature feature;
  feature.name = "id";
  feature.meanPooling = 3;
  set.problem.features = {feature};
  set.shards = {{"s", "user", 0, 1000, 0, 16, {0}}};
  return set;
}

MeasureOptions quick() {
  MeasureOptions options;
  options.warmUpRuns = 1;
  options.minRuns = options.maxRuns = 3;
  return options;
}

/// The whole table, its row half, its column halves, ids of 4 bytes, weighted
/// and unpooled features, two features.
std::vector<MeasuredSet> makeKinds() {
  std::vector<MeasuredSet> sets(6, makeSet());
  sets[1].shards[0].rowEnd = 500;
  sets[2].problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  sets[2].shards = {{"a", "user", 0, 1000, 0, 8, {0}},
                    {"b", "user", 0, 1000, 8, 16, {0}}};
  sets[3].problem.batch.idType = IdType::I32;
  sets[3].problem.features[0].weighted = true;
  sets[4].problem.features[0].pooling = Pooling::None;
  sets[5].problem.features.push_back(sets[5].problem.features[0]);
  sets[5].problem.features[1].weighted = true;
  sets[5].problem.tables[0].optimizer.kind = OptimizerKind::Adam;
  return sets;
}

TEST(Measurement, RunsEveryKind) {
  std::vector<MeasuredSet> sets = makeKinds();
  Measurer measurer(quick());
  size_t kernels = 0;
  ASSERT_TRUE(
      measurer.compile(sets, [&](size_t, size_t all) { kernels = all; }));
  EXPECT_GT(kernels, 6u);
  for (const MeasuredSet &set : sets) {
    Expected<Timing> timing = measurer.measure(set);
    ASSERT_TRUE(timing) << toString(timing.error());
    EXPECT_EQ(timing->runs, 3);
    EXPECT_GT(timing->median.forwardMs, 0);
    EXPECT_GT(timing->median.backwardMs, 0);
    EXPECT_LT(timing->median.total(), 1000);
  }
}

std::string refusal(const MeasuredSet &set) {
  Expected<Timing> timing = Measurer(quick()).measure(set);
  return timing ? "measured" : toString(timing.error());
}

TEST(Measurement, RefusesWhatOneDeviceCannotRun) {
  MeasuredSet replicated = makeSet();
  replicated.shards[0].devices = {0, 1};
  EXPECT_THAT(refusal(replicated), HasSubstr("replicated"));
  MeasuredSet alone = makeSet();
  alone.problem.tables[0].optimizer.kind = OptimizerKind::RowWiseAdagrad;
  alone.shards[0].colEnd = 8;
  EXPECT_THAT(refusal(alone), HasSubstr("use per_shard semantics"));
  alone.problem.optimizerSemantics = OptimizerSemantics::PerShard;
  EXPECT_EQ(refusal(alone), "measured");
  MeasuredSet unknown = makeSet();
  unknown.shards[0].table = "item";
  EXPECT_THAT(refusal(unknown), HasSubstr("there is no table 'item'"));
  MeasuredSet huge = makeSet();
  huge.problem.tables[0].rows = huge.shards[0].rowEnd = int64_t{1} << 31;
  EXPECT_THAT(refusal(huge), HasSubstr("GiB"));
}

TEST(PlanMeasurement, MeasuresThePlansOfATask) {
  PlanMeasurementOptions options;
  options.tasks = 1;
  options.devices = {2};
  options.measure = quick();
  std::atomic<bool> stop = false;
  auto plans =
      measurePlans(options, *makeRooflineModel(), stop, [](int, int) {});
  ASSERT_TRUE(plans) << toString(plans.error());
  ASSERT_GE(plans->size(), 2u);
  EXPECT_EQ(plans->front().algorithm, Algorithm::Default);
  for (const MeasuredPlan &plan : *plans) {
    ASSERT_EQ(plan.measured.size(), 2u);
    EXPECT_GT(plan.measuredComputeMs(), 0);
  }
  EXPECT_THAT(summarise(*plans), HasSubstr("Rank correlation"));
}

TEST(PlanMeasurement, RankCorrelation) {
  std::vector<double> a = {1, 2, 3, 4}, b = {10, 20, 40, 30}, c = {4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(rankCorrelation(a, a), 1);
  EXPECT_DOUBLE_EQ(rankCorrelation(a, c), -1);
  EXPECT_DOUBLE_EQ(rankCorrelation(a, b), 0.8);
  std::vector<double> ties = {1, 1, 2, 2};
  EXPECT_NEAR(rankCorrelation(a, ties), 0.8944271909999159, 1e-15);
  std::vector<double> same = {5, 5, 5, 5};
  EXPECT_EQ(rankCorrelation(a, same), 0);
}

} // namespace
