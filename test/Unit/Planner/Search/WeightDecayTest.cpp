//===- WeightDecayTest.cpp - Weight decay and cuts by columns -------------===//

#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

/// One table so wide, read so often, that any search would cut its columns.
ShardingProblem wideTable() {
  ShardingProblem problem;
  problem.batch.globalSize = 4096;
  problem.topology = *parseTopology("2x2xA100-40GB");
  problem.constraints.reserves = {0, 0, 0};
  addTable(problem, makeTable("wide", 1000, 64, OptimizerKind::RowWiseAdagrad),
           50);
  problem.tables[0].optimizer.weightDecay = 0.1;
  return problem;
}

ShardingPlan halves(const ShardingProblem &problem) {
  return makePlan(problem, {makeShard("w0", "wide", 0, 1000, 0, 32, {0}),
                            makeShard("w1", "wide", 0, 1000, 32, 64, {1})});
}

bool cutsColumns(const ShardingPlan &plan) {
  for (const Shard &shard : plan.shards)
    if (shard.width() != 64)
      return true;
  return false;
}

class WeightDecayTest : public testing::TestWithParam<Algorithm> {
protected:
  tl::expected<SearchResult, PlanningError>
  find(const ShardingProblem &problem) {
    SearchOptions options;
    options.algorithm = GetParam();
    options.evaluationBudget = 500;
    return search(problem, *makeRooflineModel(), options);
  }
};

/// Owners of columns exchange norms of gradients with the decay.
TEST_P(WeightDecayTest, ColumnsAreCut) {
  ShardingProblem problem = wideTable();
  problem.constraints.tables = {{0, {ShardingKind::ColumnWise}, 1}};
  for (WeightDecayMode mode : {WeightDecayMode::L2, WeightDecayMode::Decoupled})
    for (OptimizerKind kind :
         {OptimizerKind::RowWiseAdagrad, OptimizerKind::PartialRowWiseAdam}) {
      problem.tables[0].optimizer = {
          .kind = kind, .weightDecay = 0.1, .weightDecayMode = mode};
      auto found = find(problem);
      ASSERT_TRUE(found.has_value()) << found.error().str();
      EXPECT_TRUE(cutsColumns(found->plan));
    }
}

/// Where states stay one per shard, decay makes no difference.
TEST_P(WeightDecayTest, TorchRecCutsNoColumnsOfExactRowStates) {
  ShardingProblem problem = wideTable();
  problem.target = Target::TorchRec19;
  auto found = find(problem);
  ASSERT_TRUE(found.has_value()) << found.error().str();
  EXPECT_FALSE(cutsColumns(found->plan));
  problem.constraints.tables = {{0, {ShardingKind::ColumnWise}, 1}};
  found = find(problem);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().limit, Limit::Constraint);
  EXPECT_THAT(found.error().message, HasSubstr("torchrec-1.9"));
  problem.optimizerSemantics = OptimizerSemantics::PerShard;
  found = find(problem);
  ASSERT_TRUE(found.has_value()) << found.error().str();
  EXPECT_TRUE(cutsColumns(found->plan));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, WeightDecayTest,
                         testing::Values(Algorithm::Default,
                                         Algorithm::TorchRec,
                                         Algorithm::Threshold));

TEST(DecayVerifyTest, ColumnShardsOfAnyKindOfRowsAreSound) {
  ShardingProblem problem = wideTable();
  EXPECT_EQ(text(verify(halves(problem), problem)), "");
  ShardingPlan bands =
      makePlan(problem, {makeShard("w0", "wide", 0, 500, 0, 64, {0}),
                         makeShard("w1", "wide", 500, 1000, 0, 32, {1}),
                         makeShard("w2", "wide", 500, 1000, 32, 64, {2})});
  EXPECT_EQ(text(verify(bands, problem)), "");
}

} // namespace
