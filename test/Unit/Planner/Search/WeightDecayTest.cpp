//===- WeightDecayTest.cpp - Weight decay: exact norms, no column cuts ----===//
//-===//

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
ShardingProblem wideTable(double decay) {
  ShardingProblem problem;
  problem.batch.globalSize = 4096;
  problem.topology = *parseTopology("2x2xA100-40GB");
  problem.constraints.reserves = {0, 0, 0};
  addTable(problem, makeTable("wide", 1000, 64, OptimizerKind::RowWiseAdagrad),
           50);
  problem.tables[0].optimizer.weightDecay = decay;
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

TEST_P(WeightDecayTest, NoColumnCutsWithExactNorms) {
  for (Target target : {Target::Native, Target::TorchRec19}) {
    ShardingProblem problem = wideTable(0.1);
    problem.target = target;
    auto found = find(problem);
    ASSERT_TRUE(found.has_value()) << found.error().str();
    EXPECT_FALSE(cutsColumns(found->plan));
  }
}

TEST_P(WeightDecayTest, ColumnCutsWithoutDecayOrWithOneStatePerShard) {
  ShardingProblem problem = wideTable(0);
  problem.constraints.tables = {{0, {ShardingKind::ColumnWise}, 1}};
  auto found = find(problem);
  ASSERT_TRUE(found.has_value()) << found.error().str();
  EXPECT_TRUE(cutsColumns(found->plan));
  problem.tables[0].optimizer.weightDecay = 0.1;
  problem.optimizerSemantics = OptimizerSemantics::PerShard;
  found = find(problem);
  ASSERT_TRUE(found.has_value()) << found.error().str();
  EXPECT_TRUE(cutsColumns(found->plan));
}

TEST_P(WeightDecayTest, ColumnCutsWithDecoupledDecay) {
  ShardingProblem problem = wideTable(0.1);
  problem.constraints.tables = {{0, {ShardingKind::ColumnWise}, 1}};
  for (Optimizer optimizer :
       {Optimizer{.kind = OptimizerKind::RowWiseAdagrad,
                  .weightDecay = 0.1,
                  .weightDecayMode = WeightDecayMode::Decoupled},
        Optimizer{.kind = OptimizerKind::PartialRowWiseAdam,
                  .weightDecay = 0.1}}) {
    problem.tables[0].optimizer = optimizer;
    auto found = find(problem);
    ASSERT_TRUE(found.has_value()) << found.error().str();
    EXPECT_TRUE(cutsColumns(found->plan));
  }
}

TEST_P(WeightDecayTest, ColumnsOnlyIsRefusedWithTheReason) {
  ShardingProblem problem = wideTable(0.1);
  for (ShardingKind kind :
       {ShardingKind::ColumnWise, ShardingKind::RowColumn}) {
    problem.constraints.tables = {{0, {kind}, 1}};
    auto found = find(problem);
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error().limit, Limit::Constraint);
    EXPECT_THAT(found.error().message,
                HasSubstr("rowwise_adagrad with l2 weight decay cannot be "
                          "exact over column shards"));
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, WeightDecayTest,
                         testing::Values(Algorithm::Default,
                                         Algorithm::TorchRec,
                                         Algorithm::Threshold));

TEST(DecayVerifyTest, ColumnShardsAreRefused) {
  ShardingProblem problem = wideTable(0.1);
  EXPECT_EQ(text(verify(halves(problem), problem)),
            "table 'wide': rowwise_adagrad with l2 weight decay cannot be "
            "exact over column shards such as 'w0'; set weight_decay_mode = "
            "decoupled, weight_decay = 0, or optimizer_semantics = per_shard "
            "to accept one state per shard");
  problem.tables[0].optimizer.weightDecayMode = WeightDecayMode::Decoupled;
  EXPECT_EQ(text(verify(halves(problem), problem)), "");
  problem.tables[0].optimizer = {.kind = OptimizerKind::PartialRowWiseAdam,
                                 .weightDecay = 0.1,
                                 .weightDecayMode = WeightDecayMode::L2};
  EXPECT_THAT(text(verify(halves(problem), problem)),
              HasSubstr("partial_rowwise_adam with l2 weight decay cannot be "
                        "exact over column shards such as 'w0'"));
  problem.optimizerSemantics = OptimizerSemantics::PerShard;
  EXPECT_EQ(text(verify(halves(problem), problem)), "");
  problem = wideTable(0);
  EXPECT_EQ(text(verify(halves(problem), problem)), "");
}

TEST(DecayVerifyTest, HandWrittenColumnShardsAreRefusedWithTheReason) {
  ShardingProblem problem = wideTable(0.1);
  problem.constraints.fixedShards = {halves(problem).shards.front()};
  auto found = search(problem, *makeRooflineModel(), {});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().limit, Limit::Constraint);
  EXPECT_THAT(found.error().message, HasSubstr("weight decay"));
}

} // namespace
