//===- ComposedModelTest.cpp - Composed models and their remarks ----------===//

#include "SmallModel.h"
#include "Support.h"
#include "neuroshard/CostModel/ModelLibrary.h"
#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

namespace {

const DeviceClass &classOf(const char *name) { return *findDeviceClass(name); }

ComputePart part(std::string name, const NeuralComputeParameters &parameters) {
  return {std::move(name), std::make_shared<NeuralCompute>(parameters)};
}

/// Models of CPU and H200 of different sizes; none of the A100.
std::unique_ptr<CostModel> twoClasses() {
  NeuralComputeParameters other = randomModel({2, 8, 6, 4, 5}, 2);
  other.deviceClass = "H200";
  return composeModel({{part("cpu", randomModel()), part("gpu", other)}, {}});
}

/// Exchanges of a CPU topology of one level.
CommunicationPart randomCommunication(bool measured = true) {
  std::mt19937 random(4);
  auto scale = [](size_t count) {
    return FeatureScale{
        std::vector<float>(count, 0), std::vector<float>(count, 10),
        std::vector<float>(count, -100), std::vector<float>(count, 100)};
  };
  CommunicationParameters parameters;
  parameters.device = scale(kDeviceFeatureCount);
  parameters.exchange = scale(kExchangeFeatureCount);
  parameters.members.push_back(
      {{randomLayer(kDeviceFeatureCount, 8, random), randomLayer(8, 4, random)},
       {randomLayer(16 + kExchangeFeatureCount, 8, random),
        randomLayer(8, 8, random), randomLayer(8, 1, random)}});
  parameters.deviceClass = "CPU";
  parameters.backend = "gloo";
  parameters.levelCounts = {1};
  parameters.links = {{20, 8}};
  parameters.measured = measured;
  EXPECT_THAT(toString(check(parameters)), IsEmpty());
  return {"gloo", std::make_shared<CommunicationModel>(parameters)};
}

/// Of several classes the widest, and none where one's is not known.
TEST(ComposedModelTest, IntervalsAreThoseOfTheParts) {
  NeuralComputeParameters first = randomModel(), second = first;
  first.interval = {0.5, 1.25};
  second.interval = {0.75, 2};
  second.deviceClass = "H200";
  auto model = composeModel({{part("cpu", first), part("gpu", second)}, {}});
  EXPECT_EQ(model->computeInterval(classOf("H200")), second.interval);
  EXPECT_FALSE(model->computeInterval(classOf("A100-40GB")).isKnown());
  EXPECT_FALSE(model->communicationInterval().isKnown());

  ShardingProblem problem = twoTables("2xCPU");
  ShardingPlan plan = search(problem, *model, {})->plan;
  EXPECT_EQ(evaluate(problem, plan, *model, {}).computeInterval,
            first.interval);
  problem.topology.devices[1].deviceClass = "H200";
  EXPECT_EQ(evaluate(problem, plan, *model, {}).computeInterval,
            (PredictionInterval{0.5, 2}));
  problem.topology.devices[1].deviceClass = "A100-40GB";
  EXPECT_FALSE(evaluate(problem, plan, *model, {}).computeInterval.isKnown());
}

TEST(ComposedModelTest, IncrementalFormEqualsTheBatchInEveryClass) {
  std::unique_ptr<CostModel> model = twoClasses();
  const SumEmbedding &embedding = *model->sumEmbedding();
  EXPECT_EQ(embedding.size(), 3 * kSumWidth);
  std::mt19937 random(1);
  std::vector<ShardWork> works;
  for (int i = 0; i < 60; ++i)
    works.push_back(randomShard(random));
  std::vector<ShardSet> sets;
  for (size_t i = 0; i < 40; ++i) {
    const char *names[] = {"CPU", "A100-40GB", "H200"};
    ShardSet set{&classOf(names[i % 3]), {}};
    for (size_t s = 0; s < i % 7; ++s)
      set.shards.push_back(&works[(i * 3 + s) % works.size()]);
    sets.push_back(set);
  }
  std::vector<ComputeMs> batch(sets.size());
  model->computeMs(sets, batch);
  std::vector<double> one(static_cast<size_t>(embedding.size()));
  for (size_t i = 0; i < sets.size(); ++i) {
    std::vector<double> sum(one.size());
    for (const ShardWork *shard : sets[i].shards) {
      embedding.embed(*shard, *sets[i].deviceClass, one);
      for (size_t k = 0; k < sum.size(); ++k)
        sum[k] += one[k];
    }
    int count = static_cast<int>(sets[i].shards.size());
    ComputeMs single = embedding.head(sum, count, *sets[i].deviceClass);
    EXPECT_EQ(batch[i].forwardMs, single.forwardMs);
    EXPECT_EQ(batch[i].backwardMs, single.backwardMs);
    EXPECT_EQ(batch[i].total() == 0, count == 0);
  }
}

TEST(ComposedModelTest, ClassesWithoutAModelHaveTheRoofline) {
  std::mt19937 random(2);
  ShardWork work = randomShard(random);
  std::unique_ptr<CostModel> model = twoClasses();
  for (const char *name : {"A100-40GB", "CPU"}) {
    ShardSet set{&classOf(name), {&work, &work}};
    ComputeMs found, closedForm;
    model->computeMs({&set, 1}, {&found, 1});
    makeRooflineModel()->computeMs({&set, 1}, {&closedForm, 1});
    EXPECT_EQ(found.forwardMs == closedForm.forwardMs,
              std::string_view(name) != "CPU");
  }
}

TEST(ComposedModelTest, NamesItsParts) {
  EXPECT_EQ(composeModel({})->name(), "roofline");
  EXPECT_EQ(twoClasses()->name(), "cpu+gpu+roofline");
  EXPECT_EQ(composeModel({{}, {randomCommunication()}})->name(),
            "roofline+gloo");
  EXPECT_EQ(
      composeModel({{part("cpu", randomModel())}, {randomCommunication()}})
          ->name(),
      "cpu+gloo");
}

TEST(ComposedModelTest, ExchangesAreThoseOfTheirModel) {
  CommunicationPart part = randomCommunication();
  Topology topology = *parseTopology("4xCPU");
  Traffic traffic{&topology,
                  {1, 2, 3, 4},
                  {1e6, 2e6, 3e6, 4e6},
                  std::vector<double>(4, 2.5e6)};
  std::vector<double> skews = {0, 1, 2, 0.5};
  auto own = part.model->timesMs(traffic, skews, Direction::Forward);
  EXPECT_EQ(composeModel({{}, {part}})
                ->communicationMs(traffic, skews, Direction::Forward),
            own);
  auto closedForm =
      makeRooflineModel()->communicationMs(traffic, skews, Direction::Forward);
  EXPECT_NE(own, closedForm);
  EXPECT_EQ(twoClasses()->communicationMs(traffic, skews, Direction::Forward),
            closedForm);
}

// The closed form's bound holds only for what it predicts.
TEST(ComposedModelTest, LowerBound) {
  ShardingProblem problem = twoTables("2xCPU@1GiB");
  ShardingProblem other = twoTables("2xA100-40GB");
  ObjectiveOptions options;
  auto closedForm = makeRooflineModel();
  EXPECT_EQ(lowerBoundMs(other, *twoClasses(), options),
            lowerBoundMs(other, *closedForm, options));
  double cpu = lowerBoundMs(problem, *twoClasses(), options);
  EXPECT_GT(cpu, 0);
  EXPECT_LT(cpu, lowerBoundMs(problem, *closedForm, options));
  EXPECT_EQ(lowerBoundMs(problem,
                         *composeModel({{part("cpu", randomModel())},
                                        {randomCommunication()}}),
                         options),
            0);
}

TEST(ComposedModelTest, ASearchRunsOnIt) {
  ShardingProblem problem = twoTables("2xCPU@1GiB");
  auto model =
      composeModel({{part("cpu", randomModel())}, {randomCommunication()}});
  auto result = search(problem, *model, {});
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_GT(result->breakdown.costMs, 0);
  EXPECT_EQ(result->breakdown.costMs,
            evaluate(problem, result->plan, *model, {}).costMs);
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

std::vector<std::string> remarksOf(const ModelParts &parts,
                                   const std::string &topology,
                                   double rows = 1000) {
  ShardingProblem problem;
  problem.batch.globalSize = 4096;
  problem.topology = *parseTopology(topology);
  addTable(problem, makeTable("a", static_cast<int64_t>(rows), 16), 4);
  ShardingPlan plan = makePlan(
      problem,
      {makeShard("a_0", "a", 0, static_cast<int64_t>(rows), 0, 8, {0}),
       makeShard("a_1", "a", 0, static_cast<int64_t>(rows), 8, 16, {0})});
  return remarksOnPlan(problem, plan, *composeModel(parts));
}

TEST(ModelRemarksTest, WhatTheClosedFormPredicts) {
  EXPECT_THAT(
      remarksOf({}, "2xH200"),
      UnorderedElementsAre(
          "no measured compute model for device class H200: the closed form "
          "predicts its compute, with rates measured on such a device",
          "no measured communication model for this topology: the closed form "
          "predicts its exchanges; the default links inside a node are "
          "measured on other devices, those between nodes of data sheets"));
  EXPECT_THAT(
      remarksOf({}, "2xA100-80GB"),
      Contains("no measured compute model for device class A100-80GB: the "
               "closed form predicts its compute, with rates measured on other "
               "devices"));
  EXPECT_THAT(
      remarksOf({}, "2xMI300X"),
      Contains("no measured compute model for device class MI300X: the closed "
               "form predicts its compute, with rates of data sheets"));
  // One device exchanges nothing.
  EXPECT_THAT(remarksOf({{part("cpu", randomModel({1}))}, {}}, "1xCPU"),
              IsEmpty());
}

TEST(ModelRemarksTest, SimulatedModels) {
  NeuralComputeParameters simulated = randomModel({1});
  simulated.measured = false;
  EXPECT_THAT(remarksOf({{part("cpu", simulated)}, {}}, "1xCPU"),
              UnorderedElementsAre("model 'cpu' was trained on simulated "
                                   "times, not on measured ones"));
}

TEST(ModelRemarksTest, ShardsOutsideTheTrainingRange) {
  NeuralComputeParameters narrow = randomModel({1});
  auto index = [](std::string_view name) {
    return static_cast<size_t>(
        std::find(featureNames().begin(), featureNames().end(), name) -
        featureNames().begin());
  };
  narrow.features.max[index("log_rows")] = static_cast<float>(std::log1p(1e6));
  narrow.features.min[index("log_rows")] = static_cast<float>(std::log1p(100));
  EXPECT_THAT(remarksOf({{part("cpu", narrow)}, {}}, "1xCPU", 1e6), IsEmpty());
  EXPECT_THAT(remarksOf({{part("cpu", narrow)}, {}}, "1xCPU", 4e7),
              UnorderedElementsAre(
                  "2 of 2 shards are unlike those that model 'cpu' was trained "
                  "on, and their compute is a guess: 4e+07 rows (trained on "
                  "100 to 1e+06)"));
  // The farthest come first, the rest are counted.
  for (const char *name : {"log_width", "width_in_128", "log_pooling"})
    narrow.features.max[index(name)] = 0.01f;
  EXPECT_THAT(remarksOf({{part("cpu", narrow)}, {}}, "1xCPU", 4e7),
              Contains(HasSubstr(" columns (trained on 0 to 0.0101)")));
  // Of what is derived only the sentence stays.
  narrow.features.max[index("log_rows")] = 50;
  for (const char *name : {"log_width", "log_pooling"})
    narrow.features.max[index(name)] = 50;
  EXPECT_THAT(remarksOf({{part("cpu", narrow)}, {}}, "1xCPU", 4e7),
              Contains(HasSubstr("a guess: in what they read and write")));
  // Problems of this test have no statistics of ids.
  narrow.features.min[index("reuse_known")] = 1;
  EXPECT_THAT(remarksOf({{part("cpu", narrow)}, {}}, "1xCPU", 4e7),
              Contains(HasSubstr("'neuroshard profile' measures it")));
}

TEST(ModelRemarksTest, MoreShardsThanTrainedOn) {
  NeuralComputeParameters few = randomModel({1});
  few.maxShards = 2;
  EXPECT_THAT(remarksOf({{part("cpu", few)}, {}}, "1xCPU"), IsEmpty());
  few.maxShards = 1;
  EXPECT_THAT(remarksOf({{part("cpu", few)}, {}}, "1xCPU"),
              UnorderedElementsAre("model 'cpu' was trained on at most 1 "
                                   "shards per device; the plan has up to 2"));
}

TEST(ModelRemarksTest, MembersThatDisagree) {
  NeuralComputeParameters model = randomModel({2});
  model.members[1] = model.members[0];
  EXPECT_THAT(remarksOf({{part("cpu", model)}, {}}, "1xCPU"), IsEmpty());
  model.members[1].head[1].bias[0] += 0.4f; // A standard deviation of 0.2.
  EXPECT_THAT(remarksOf({{part("cpu", model)}, {}}, "1xCPU"),
              UnorderedElementsAre("the members of model 'cpu' disagree by 22 "
                                   "% on device 0: its predicted compute is "
                                   "uncertain"));
}

} // namespace
