//===- CostNetworksTest.cpp - Costs are learnt from measured plans --------===//

#include "Layers/Standardise.h"
#include "Placement/PlacementTurns.h"

#include "neuroshard/Planner/PlacementMdp.h"
#include "neuroshard/Support/Random.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace neuroshard;
using testing::HasSubstr;

namespace {

PlacementTaskSettings smallTasks(const char *costModel) {
  PlacementTaskSettings tasks;
  tasks.minTables = 6;
  tasks.maxTables = 16;
  tasks.maxDevices = 4;
  tasks.maxFill = 0.4;
  tasks.costModels = {costModel};
  return tasks;
}

/// A device for each piece, at random whatever the memory.
std::vector<int> randomDevices(const PlacementExample &example, uint64_t seed) {
  MersenneTwister random(seed);
  size_t devices = example.problem.topology.devices.size();
  std::vector<int> chosen;
  for (size_t i = 0; i < example.problem.tables.size(); ++i)
    chosen.push_back(static_cast<int>(random.below(devices)));
  return chosen;
}

struct Measured {
  PlacementExample example;
  std::vector<int> devices;
  PlanTimes plan;
};

std::vector<Measured> measure(const PlacementTaskSettings &tasks, uint64_t seed,
                              int count) {
  std::vector<Measured> all;
  auto examples = randomPlacementExamples(tasks, seed, count);
  for (PlacementExample &example : *examples) {
    std::vector<int> devices = randomDevices(example, ++seed);
    PlanTimes plan = measurePlan(example, devices);
    all.push_back({std::move(example), std::move(devices), std::move(plan)});
  }
  return all;
}

FeatureScale scaleOfTables(const std::vector<Measured> &plans) {
  std::vector<float> tables;
  for (const Measured &each : plans)
    tables.insert(tables.end(), each.plan.sets.features.begin(),
                  each.plan.sets.features.end());
  return scaleOf(tables, kFeatureCount);
}

/// Of the logarithms of the costs: mean distance of what `predict` says.
template <typename Predict>
double errorOf(std::vector<Measured> &plans, Predict predict) {
  double sum = 0;
  for (Measured &each : plans)
    sum += std::abs(std::log(predict(each) / each.plan.costMs));
  return sum / static_cast<double>(plans.size());
}

/// What the networks say a plan costs.
double predicted(const CostNetworks &networks, Measured &measured) {
  measured.example.model = networks.modelFor(measured.plan.hardware);
  return measurePlan(measured.example, measured.devices).costMs;
}

} // namespace

TEST(CostNetworksTest, APlanIsMeasuredAsItsTaskCostsIt) {
  for (const char *model : {"roofline", "reference"})
    for (Measured &each : measure(smallTasks(model), 1, 5)) {
      auto mdp = PlacementMdp::make(each.example.problem, *each.example.model,
                                    each.example.objective);
      while (std::optional<size_t> piece = mdp->next())
        mdp->place(each.devices[*piece]);
      EXPECT_EQ(each.plan.costMs, mdp->costMs());
      EXPECT_GE(each.plan.sets.size(), 1u);
      EXPECT_GE(each.plan.exchanges.size(), 4u);
      EXPECT_THAT(each.plan.hardware, HasSubstr(" on "));
    }
}

TEST(CostNetworksTest, PredictPlansThatWereNotMeasured) {
  for (const char *model : {"roofline", "reference"}) {
    std::vector<Measured> training = measure(smallTasks(model), 1, 100);
    std::vector<Measured> heldOut = measure(smallTasks(model), 1000, 30);
    CostNetworks networks(scaleOfTables(training), 1);
    double mean = 0;
    for (const Measured &each : training) {
      networks.add(each.plan);
      mean += std::log(each.plan.costMs) / static_cast<double>(training.size());
    }
    double constant =
        errorOf(heldOut, [&](const Measured &) { return std::exp(mean); });
    networks.fit({150, 3e-3, 2});
    double error = errorOf(
        heldOut, [&](Measured &each) { return predicted(networks, each); });
    EXPECT_LT(error, 0.3 * constant) << model;
    EXPECT_GT(error, 0) << model;
  }
}

TEST(PlacementTurnsTest, TheNetworkReplacesTheModelsThatMeasured) {
  PlacementTaskSettings tasks = smallTasks("roofline");
  PlacementTurnSettings settings;
  settings.plansPerTurn = 12;
  settings.costSteps = 5;
  std::vector<Measured> some = measure(tasks, 1, 5);
  PlacementTurns turns(tasks, settings, 1, 2, scaleOfTables(some));
  auto names = [&] {
    auto examples = *randomPlacementExamples(tasks, 7, 3);
    turns.estimate(examples);
    std::vector<std::string> all;
    for (const PlacementExample &example : examples)
      all.push_back(example.model->name());
    return all;
  };
  EXPECT_THAT(names(), testing::Each("roofline"));
  auto first = turns.take(nullptr);
  auto second = turns.take(nullptr);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->turn, 1);
  EXPECT_GT(first->plans, 6);
  EXPECT_LE(first->plans, 12);
  EXPECT_GT(second->plans, first->plans);
  // The roofline's own costs are foretold by the roofline.
  EXPECT_LT(first->costError, 1e-9);
  EXPECT_GT(second->costError, 1e-3);
  EXPECT_THAT(names(), testing::Each("cost network"));
}
