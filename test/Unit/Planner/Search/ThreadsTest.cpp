//===- ThreadsTest.cpp - The plan does not depend on the threads ----------===//

#include "SearchTasks.h"
#include "Support.h"
#include "Units/SearchThreads.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Serialization/Json.h"

#include <gtest/gtest.h>

#include <atomic>
#include <pthread.h>
#include <system_error>

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

TEST(ThreadsTest, NegativeAndAbsurdNumbersAreRefused) {
  for (int threads : {-1, 1025, 100'000}) {
    SearchOptions options;
    options.threads = threads;
    auto result = search(twoTables(), *makeRooflineModel(), options);
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message.find(
                  "threads: expected a whole number in [0, 1024], got: " +
                  std::to_string(threads)),
              std::string::npos)
        << result.error().message;
  }
}

TEST(ThreadsTest, DoesAllWorkOnTheThreadsThatStart) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  // Stacks as large as the address space, so that no thread can start.
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  std::vector<std::atomic<int>> calls(50);
  {
    SearchThreads pool(8);
    for (int round = 0; round < 2; ++round)
      pool.forEach(calls.size(), [&](size_t i) { ++calls[i]; });
    EXPECT_THROW(std::thread([] {}), std::system_error);
  }
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  for (const std::atomic<int> &count : calls)
    EXPECT_EQ(count, 2);
  pthread_attr_destroy(&usual);
  pthread_attr_destroy(&huge);
}

} // namespace
