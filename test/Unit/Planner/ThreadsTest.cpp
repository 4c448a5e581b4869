//===- ThreadsTest.cpp - The plan does not depend on the threads ----------===//

#include "SearchTasks.h"
#include "Support.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Json.h"
#include "neuroshard/Planner/Search.h"

#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

TEST(ThreadsTest, SamePlanWithOneTwoAndEightThreads) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    bool reference = seed % 2 == 0;
    std::unique_ptr<CostModel> model =
        reference ? makeReferenceModel() : makeRooflineModel();
    ShardingProblem problem = randomTask({}, seed);
    std::string first;
    for (int threads : {1, 2, 8}) {
      SearchOptions options;
      options.objective.kind =
          reference ? ObjectiveKind::Published : ObjectiveKind::Step;
      options.evaluationBudget = 20'000;
      options.seed = seed;
      options.threads = threads;
      auto result = search(problem, *model, options);
      ASSERT_TRUE(result.has_value()) << result.error().str();
      std::string plan = writePlan(result->plan);
      if (first.empty())
        first = plan;
      EXPECT_EQ(plan, first) << threads << " threads";
    }
  }
}

TEST(ThreadsTest, NegativeNumbersAreRefused) {
  SearchOptions options;
  options.threads = -1;
  auto result = search(twoTables(), *makeRooflineModel(), options);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("threads: expected a number in [0"),
            std::string::npos)
      << result.error().message;
}

} // namespace
