//===- PlacementTrainingTest.cpp - Policies learn, and the same each time -===//

#include "neuroshard/Training/PlacementTraining.h"

#include "Placement/PlacementEpisodes.h"

#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Training/PlacementEvaluation.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace neuroshard;
using testing::HasSubstr;

namespace {

PlacementTrainingOptions smallTraining() {
  PlacementTrainingOptions options;
  options.tasks.minTables = 6;
  options.tasks.maxTables = 16;
  options.tasks.maxDevices = 4;
  options.tasks.maxFill = 0.5;
  options.iterations = 40;
  options.validationTasks = 20;
  options.validateEvery = 10;
  return options;
}

/// Pins the first table, replicates the second.
void constrain(ShardingProblem &problem) {
  problem.constraints.pins = {{0, {1}}};
  problem.constraints.tables = {{1, {ShardingKind::Replicated}, 1}};
  for (Device &device : problem.topology.devices)
    device.memoryBytes *= 2;
}

RecordedEpisodes episodesOf(std::vector<double> costs,
                            std::vector<double> placed) {
  RecordedEpisodes recorded;
  recorded.costsMs = std::move(costs);
  recorded.placedShare = std::move(placed);
  return recorded;
}

} // namespace

TEST(PlacementTasksTest, AreWithinTheSettingsAndTheSameEachTime) {
  PlacementTaskSettings settings;
  settings.minTables = 5;
  settings.maxTables = 7;
  settings.minDevices = 3;
  settings.maxDevices = 4;
  settings.minFill = settings.maxFill = 0.5;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    auto first = randomPlacementExample(settings, seed);
    auto again = randomPlacementExample(settings, seed);
    ASSERT_TRUE(first && again);
    const ShardingProblem &problem = first->problem;
    EXPECT_EQ(problem, again->problem);
    EXPECT_TRUE(check(problem).empty()) << toString(check(problem));
    EXPECT_GE(problem.tables.size(), 5u);
    EXPECT_LE(problem.tables.size(), 7u);
    EXPECT_GE(problem.topology.deviceCount(), 3);
    EXPECT_LE(problem.topology.deviceCount(), 4);
    int64_t capacity = problem.topology.devices[0].memoryBytes, total = 0;
    for (const Table &table : problem.tables) {
      int64_t bytes = 4 * table.rows * table.dim;
      EXPECT_LE(static_cast<double>(bytes),
                0.9 * static_cast<double>(capacity) + 1);
      total += bytes;
    }
    EXPECT_LE(static_cast<double>(total),
              0.5 * problem.topology.deviceCount() *
                      static_cast<double>(capacity) +
                  static_cast<double>(problem.topology.deviceCount()));
    EXPECT_TRUE(checkObjective(*first->model, first->objective).empty());
  }
}

TEST(PlacementTasksTest, BadSettingsAreAllNamed) {
  PlacementTrainingOptions options;
  options.tasks.minTables = 9;
  options.tasks.maxTables = 8;
  options.tasks.maxFill = 1.5;
  options.tasks.costModels = {};
  options.episodesPerTask = 1;
  options.learningRate = NAN;
  options.costNetwork.turns = options.iterations + 1;
  options.costNetwork.plansPerTurn = 0;
  auto trained = trainPlacement(options);
  ASSERT_FALSE(trained);
  std::string text = toString(trained.error());
  for (const char *name :
       {"tables: ", "fill: ", "cost_models: ", "episodes_per_task: ",
        "learning_rate: ", "turns: ", "plans_per_turn: "})
    EXPECT_THAT(text, HasSubstr(name));
}

TEST(PlacementTasksTest, AnUnknownCostModelIsAnError) {
  PlacementTaskSettings settings;
  settings.costModels = {"nonsense"};
  auto example = randomPlacementExample(settings, 1);
  ASSERT_FALSE(example);
  EXPECT_THAT(toString(example.error()), HasSubstr("nonsense"));
}

TEST(PlacementEpisodesTest, AdvantagesAreStandardDeviationsBelowTheMean) {
  RecordedEpisodes recorded = episodesOf({1, 3}, {1, 1});
  judgeEpisodes(recorded);
  // Mean 2, deviation 1 + 1e-4 of the mean.
  EXPECT_NEAR(recorded.data.advantages[0], 1 / 1.0002, 1e-6);
  EXPECT_NEAR(recorded.data.advantages[1], -1 / 1.0002, 1e-6);
}

TEST(PlacementEpisodesTest, EqualEpisodesTeachNothing) {
  RecordedEpisodes recorded = episodesOf({2, 2, 2}, {1, 1, 1});
  judgeEpisodes(recorded);
  for (float advantage : recorded.data.advantages)
    EXPECT_EQ(advantage, 0);
}

TEST(PlacementEpisodesTest, ADeadEndIsWorseTheEarlierItComes) {
  RecordedEpisodes recorded = episodesOf({1, 3, NAN, NAN}, {1, 1, 0.9, 0.2});
  judgeEpisodes(recorded);
  const std::vector<float> &advantages = recorded.data.advantages;
  EXPECT_GT(advantages[1], advantages[2]);
  EXPECT_GT(advantages[2], advantages[3]);
}

TEST(PlacementTrainingTest, LearnsFromRewardsAlone) {
  auto trained = trainPlacement(smallTraining());
  ASSERT_TRUE(trained) << toString(trained.error());
  ASSERT_EQ(trained->curve.size(), 5u);
  // Nearly by chance at first; most of what that wastes is gone at the end.
  double before = trained->curve.front().validationRatio;
  double best = before;
  for (const PlacementCurvePoint &point : trained->curve)
    best = std::min(best, point.validationRatio);
  EXPECT_GT(before, 1.15);
  EXPECT_LT(best - 1, 0.4 * (before - 1));
}

TEST(PlacementTrainingTest, SameOptionsSamePolicyWhateverTheThreads) {
  PlacementTrainingOptions options = smallTraining();
  options.iterations = 4;
  options.validationTasks = 5;
  options.validateEvery = 2;
  options.costNetwork.plansPerTurn = 20;
  options.costNetwork.costSteps = 20;
  auto bytes = [&](int threads, uint64_t seed, int turns = 0) {
    options.costNetwork.turns = turns;
    options.threads = threads;
    options.seed = seed;
    return toTensorFile(trainPlacement(options)->parameters)
        ->tensors.at("head.0.weight")
        .bytes;
  };
  EXPECT_EQ(bytes(1, 1), bytes(3, 1));
  EXPECT_NE(bytes(1, 1), bytes(1, 2));
  EXPECT_EQ(bytes(1, 1, 2), bytes(3, 1, 2));
  // What the policy learns depends on how its costs were learnt.
  auto usual = bytes(1, 1, 2);
  options.costNetwork.costLearningRate *= 2;
  EXPECT_NE(bytes(1, 1, 2), usual);
}

TEST(PlacementTrainingTest, LearnsFromACostNetworkInTurns) {
  PlacementTrainingOptions options = smallTraining();
  options.tasks.costModels = {"reference"};
  options.costNetwork.turns = 2;
  options.costNetwork.plansPerTurn = 60;
  options.costNetwork.costSteps = 150;
  auto trained = trainPlacement(options);
  ASSERT_TRUE(trained) << toString(trained.error());
  ASSERT_EQ(trained->turns.size(), 2u);
  EXPECT_LE(trained->turns.back().plans, 120);
  EXPECT_LT(trained->turns.back().costError, 0.2);
  // Judged by the costs that measured, which only the network has seen.
  double before = trained->curve.front().validationRatio;
  EXPECT_LT(trained->curve.back().validationRatio - 1, 0.4 * (before - 1));
}

TEST(PlacementTrainingTest, PlainInferenceIsWhatLibTorchComputes) {
  PlacementTrainingOptions options = smallTraining();
  options.iterations = 10;
  auto trained = trainPlacement(options);
  ASSERT_TRUE(trained);
  std::vector<PlacementExample> examples;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    examples.push_back(*randomPlacementExample({}, seed));
    // Some with tables that have no choice, or are on all devices.
    if (seed % 2)
      constrain(examples.back().problem);
  }
  EXPECT_LT(largestScoreDifference(trained->parameters, examples), 1e-5);
  EXPECT_GT(largestScoreDifference(trained->parameters, examples), 0);
}

TEST(PlacementEvaluationTest, ComparesWithEachPlanner) {
  PlacementTrainingOptions training = smallTraining();
  training.iterations = 2;
  auto trained = trainPlacement(training);
  ASSERT_TRUE(trained);
  auto policy = makePlacementPolicy(trained->parameters, "small");
  PlacementEvaluationOptions options;
  options.tasks = training.tasks;
  options.count = 4;
  options.samples = 5;
  auto comparisons = evaluatePlacement(*policy, options);
  ASSERT_TRUE(comparisons);
  ASSERT_EQ(comparisons->size(), 12u);
  // Against itself, and against more of itself, which is never dearer.
  EXPECT_EQ((*comparisons)[0].equal, (*comparisons)[0].both);
  EXPECT_EQ((*comparisons)[1].cheaper, 0);
  EXPECT_GE((*comparisons)[1].ratio, 1);
  EXPECT_EQ((*comparisons)[11].planner, "default");
  EXPECT_GE((*comparisons)[11].ratio, 1);
  EXPECT_THAT(toMarkdown(*comparisons), HasSubstr("| greedy by cost |"));
}
