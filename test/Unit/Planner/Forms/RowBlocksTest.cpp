//===- RowBlocksTest.cpp - TorchRec's row-wise tables to save time --------===//

#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

constexpr int kDevices = 4;
constexpr int kRowWise = kDevices;

/// Tables that this target must not cut by columns, as their optimizer keeps
/// one state per row; the first `hot` ones take nearly all the time.
ShardingProblem rowWiseStates(int hot) {
  ShardingProblem problem;
  problem.batch.globalSize = 65536;
  problem.topology = *parseTopology("4xH200");
  problem.target = Target::TorchRec19;
  problem.optimizerSemantics = OptimizerSemantics::Exact;
  for (int i = 0; i < 5; ++i)
    addTable(problem,
             makeTable(numbered("t", i), 4'000'000, 64,
                       OptimizerKind::RowWiseAdagrad),
             i < hot ? 100 - 10 * i : 4 + i);
  return problem;
}

/// Each table on one device, or in even blocks of rows over all of them.
ShardingPlan planOf(const ShardingProblem &problem,
                    const std::vector<int> &forms) {
  std::vector<Shard> shards;
  for (size_t i = 0; i < forms.size(); ++i) {
    const Table &table = problem.tables[i];
    int parts = forms[i] == kRowWise ? kDevices : 1;
    for (int part = 0; part < parts; ++part)
      shards.push_back(makeShard(numbered((table.name + "_").c_str(), part),
                                 table.name, part * table.rows / parts,
                                 (part + 1) * table.rows / parts, 0, table.dim,
                                 {parts > 1 ? part : forms[i]}));
  }
  return makePlan(problem, std::move(shards));
}

/// The lowest cost of all plans of the target.
double leastCostMs(const ShardingProblem &problem, const CostModel &model) {
  double least = 1e300;
  std::vector<int> forms(problem.tables.size(), 0);
  for (;;) {
    ShardingPlan plan = planOf(problem, forms);
    EXPECT_EQ(text(verify(plan, problem)), "");
    least = std::min(least, evaluate(problem, plan, model, {}).costMs);
    size_t digit = 0;
    while (digit < forms.size() && ++forms[digit] > kRowWise)
      forms[digit++] = 0;
    if (digit == forms.size())
      return least;
  }
}

int rowWiseTables(const ShardingProblem &problem, const ShardingPlan &plan) {
  return static_cast<int>(
      std::ranges::count_if(problem.tables, [&](const Table &table) {
        return std::ranges::count(plan.shards, table.name, &Shard::table) ==
               kDevices;
      }));
}

class RowBlocksTest : public testing::TestWithParam<int> {};

TEST_P(RowBlocksTest, TheDefaultSearchIsAsGoodAsTryingAllPlans) {
  ShardingProblem problem = rowWiseStates(GetParam());
  std::unique_ptr<CostModel> model = makeRooflineModel();
  auto result = search(problem, *model, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(text(verify(result->plan, problem)), "");
  EXPECT_NEAR(result->breakdown.costMs, leastCostMs(problem, *model),
              1e-4 * result->breakdown.costMs);
  EXPECT_GE(rowWiseTables(problem, result->plan), GetParam() > 0);
}

INSTANTIATE_TEST_SUITE_P(HotTables, RowBlocksTest, testing::Values(0, 1, 2, 3));

TEST(RowBlocksRulesTest, ForbiddenRowsStayForbidden) {
  ShardingProblem problem = rowWiseStates(1);
  problem.constraints.tables.push_back({0, {ShardingKind::TableWise}});
  auto result = search(problem, *makeRooflineModel(), {});
  ASSERT_TRUE(result);
  EXPECT_EQ(rowWiseTables(problem, result->plan), 0);
}

} // namespace
