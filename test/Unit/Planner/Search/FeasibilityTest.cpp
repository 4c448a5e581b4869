//===- FeasibilityTest.cpp - Tasks with a known plan always get one -------===//

#include "SearchTasks.h"
#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

class FeasibilityTest : public testing::TestWithParam<int> {};

TEST_P(FeasibilityTest, EveryTaskIsPlanned) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  SearchOptions options;
  options.evaluationBudget = 200;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    KnownTask task = taskFromPlan(GetParam() / 100.0, seed);
    ASSERT_EQ(text(verify(task.plan, task.problem)), "") << seed;
    auto result = search(task.problem, *model, options);
    ASSERT_TRUE(result.has_value()) << seed << ": " << result.error().str();
    EXPECT_EQ(text(verify(result->plan, task.problem)), "") << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Percent, FeasibilityTest,
                         testing::Values(60, 80, 95, 99));

} // namespace
