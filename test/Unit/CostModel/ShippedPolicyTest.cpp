//===- ShippedPolicyTest.cpp - The shipped placement policy is worth it ---===//

#include "SearchTasks.h"

#include "neuroshard/CostModel/ModelLibrary.h"
#include "neuroshard/CostModel/NeuralPolicy.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

using namespace neuroshard;

namespace {

constexpr const char *kFile =
    NEUROSHARD_SOURCE_DIR "/models/placement_policy.safetensors";

std::optional<double> costOf(const ShardingProblem &problem,
                             const CostModel &model, SearchOptions options) {
  options.threads = 1;
  if (!model.separatesBackward())
    options.objective.kind = ObjectiveKind::Published;
  auto result = search(problem, model, options);
  if (!result)
    return std::nullopt;
  EXPECT_TRUE(verify(result->plan, problem).empty());
  return result->breakdown.costMs;
}

std::optional<double> bestGreedy(const ShardingProblem &problem,
                                 const CostModel &model) {
  std::optional<double> best;
  for (Algorithm algorithm : {Algorithm::Dim, Algorithm::Size,
                              Algorithm::Lookup, Algorithm::SizeLookup}) {
    SearchOptions options;
    options.algorithm = algorithm;
    std::optional<double> cost = costOf(problem, model, options);
    if (cost && (!best || *cost < *best))
      best = cost;
  }
  return best;
}

/// Geometric mean of the policy's cost over that of the best greedy baseline of
/// each task.
double meanRatio(const CostModel &model, const TaskSettings &settings) {
  auto policy = readPlacementPolicy(kFile);
  EXPECT_TRUE(policy) << toString(policy.error());
  if (!policy)
    return INFINITY;
  SearchOptions options;
  options.algorithm = Algorithm::DreamShard;
  options.policy = policy->get();
  double logs = 0;
  int tasks = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    ShardingProblem problem = randomTask(settings, seed);
    std::optional<double> best = bestGreedy(problem, model);
    std::optional<double> own = costOf(problem, model, options);
    if (!best)
      continue;
    // Where a baseline finds a plan, so does the policy.
    EXPECT_TRUE(own) << seed;
    if (!own)
      continue;
    logs += std::log(*own / *best);
    ++tasks;
  }
  EXPECT_GT(tasks, 30);
  return std::exp(logs / tasks);
}

} // namespace

/// The tasks are made by another generator than those it learnt from.
TEST(ShippedPolicyTest, BeatsTheBestGreedyBaselineOfEachTask) {
  TaskSettings loose;
  loose.fill = 0.3;
  EXPECT_LT(meanRatio(*makeRooflineModel(), loose), 0.99);
  EXPECT_LT(meanRatio(*makeReferenceModel(), loose), 0.99);
}

TEST(ShippedPolicyTest, ServesMoreTablesAndDevicesThanItWasTrainedOn) {
  TaskSettings large;
  large.minTables = 150;
  large.maxTables = 250;
  large.minDevices = large.maxDevices = 32;
  EXPECT_LT(meanRatio(*makeRooflineModel(), large), 0.99);
}

TEST(ShippedPolicyTest, IsSmall) {
  EXPECT_LE(std::filesystem::file_size(kFile), 300'000u);
}
