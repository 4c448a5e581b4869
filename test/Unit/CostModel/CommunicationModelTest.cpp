//===- CommunicationModelTest.cpp - Inference equals its definition -------===//

#include "SmallCommunication.h"
#include "neuroshard/CostModel/Roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

//===----------------------------------------------------------------------===//
// The definition in CommunicationModel.h, in double, one number at a time.
//===----------------------------------------------------------------------===//

using Numbers = std::vector<double>;

Numbers apply(const DenseLayer &layer, const Numbers &x, bool relu) {
  Numbers y;
  for (int64_t o = 0; o < layer.out; ++o) {
    double sum = layer.bias[static_cast<size_t>(o)];
    for (int64_t i = 0; i < layer.in; ++i)
      sum += layer.weight[static_cast<size_t>(o * layer.in + i)] *
             x[static_cast<size_t>(i)];
    y.push_back(relu ? std::max(0.0, sum) : sum);
  }
  return y;
}

Numbers scaled(const FeatureScale &scale, const float *features) {
  Numbers x;
  for (size_t i = 0; i < scale.mean.size(); ++i) {
    double margin = 0.1 * (scale.max[i] - scale.min[i]);
    double value = std::clamp<double>(features[i], scale.min[i] - margin,
                                      scale.max[i] + margin);
    x.push_back((value - scale.mean[i]) / scale.std[i]);
  }
  return x;
}

/// Mean, or maximum, of phi over `devices`; zeros for none.
Numbers pooled(const std::vector<Numbers> &phi, const std::vector<int> &devices,
               bool maximum) {
  Numbers result(phi[0].size(), 0.0);
  for (size_t k = 0; k < result.size() && !devices.empty(); ++k) {
    double sum = 0, most = -1;
    for (int d : devices) {
      sum += phi[static_cast<size_t>(d)][k];
      most = std::max(most, phi[static_cast<size_t>(d)][k]);
    }
    result[k] = maximum ? most : sum / static_cast<double>(devices.size());
  }
  return result;
}

Numbers plainCorrections(const CommunicationParameters &model,
                         const CommunicationMember &member,
                         const CommunicationFeatures &features) {
  int devices = static_cast<int>(features.deviceCount());
  std::vector<Numbers> phi;
  for (int d = 0; d < devices; ++d)
    phi.push_back(apply(
        member.phi[1],
        apply(member.phi[0],
              scaled(model.device, &features.device[static_cast<size_t>(d) *
                                                    kDeviceFeatureCount]),
              true),
        true));
  Numbers corrections;
  for (int d = 0; d < devices; ++d) {
    std::vector<int> others, near;
    for (int o = 0; o < devices; ++o) {
      if (o == d)
        continue;
      others.push_back(o);
      if (features.group[static_cast<size_t>(o)] ==
          features.group[static_cast<size_t>(d)])
        near.push_back(o);
    }
    Numbers context = phi[static_cast<size_t>(d)];
    for (const Numbers &part :
         {pooled(phi, others, false), pooled(phi, others, true),
          pooled(phi, near, false),
          scaled(model.exchange, features.exchange.data())})
      context.insert(context.end(), part.begin(), part.end());
    Numbers hidden =
        apply(member.head[1], apply(member.head[0], context, true), true);
    corrections.push_back(apply(member.head[2], hidden, false)[0]);
  }
  return corrections;
}

Numbers plainTimes(const CommunicationParameters &model, const Traffic &traffic,
                   const Numbers &skews, Direction direction) {
  CommunicationFeatures features = featurizeExchange(
      traffic, CommunicationModel(model).usedLevels(*traffic.topology), skews,
      direction);
  Numbers mean(features.deviceCount());
  for (const CommunicationMember &member : model.members) {
    Numbers corrections = plainCorrections(model, member, features);
    for (size_t d = 0; d < mean.size(); ++d)
      mean[d] += corrections[d] / static_cast<double>(model.members.size());
  }
  for (size_t d = 0; d < mean.size(); ++d)
    mean[d] = features.waitMs[d] + features.closedFormMs[d] * std::exp(mean[d]);
  return mean;
}

//===----------------------------------------------------------------------===//

class CommunicationModelTest : public testing::TestWithParam<const char *> {
protected:
  /// Devices in another order, within the groups of the topology.
  std::vector<size_t> shuffled(const Topology &topology) {
    std::vector<size_t> order(topology.devices.size());
    std::iota(order.begin(), order.end(), size_t{0});
    auto begin = order.begin();
    for (int size : topology.levels.back().groupSizes) {
      std::shuffle(begin, begin + size, random);
      begin += size;
    }
    return order;
  }

  std::mt19937 random{3};
  CommunicationParameters parameters = randomCommunicationModel();
  CommunicationModel model{parameters};
};

TEST_P(CommunicationModelTest, EqualsItsDefinition) {
  Topology topology = *parseTopology(GetParam());
  for (int i = 0; i < 50; ++i) {
    Traffic traffic = randomTraffic(topology, random);
    Numbers skews = i % 2 ? randomSkews(topology, random) : Numbers();
    Direction direction = static_cast<Direction>(i % 3);
    Numbers expected = plainTimes(parameters, traffic, skews, direction);
    Numbers times = model.timesMs(traffic, skews, direction);
    ASSERT_EQ(times.size(), expected.size());
    for (size_t d = 0; d < times.size(); ++d)
      EXPECT_NEAR(times[d], expected[d], 1e-5 * expected[d]);
  }
}

TEST_P(CommunicationModelTest, OrderOfDevicesChangesNoBit) {
  Topology topology = *parseTopology(GetParam());
  for (int i = 0; i < 50; ++i) {
    Traffic traffic = randomTraffic(topology, random);
    Numbers skews = randomSkews(topology, random);
    Numbers times = model.timesMs(traffic, skews, Direction::Forward);
    Traffic other = traffic;
    Numbers otherSkews = skews;
    std::vector<size_t> order = shuffled(topology);
    for (size_t d = 0; d < order.size(); ++d) {
      other.bytesOut[d] = traffic.bytesOut[order[d]];
      other.bytesIn[d] = traffic.bytesIn[order[d]];
      other.dims[d] = traffic.dims[order[d]];
      otherSkews[d] = skews[order[d]];
    }
    Numbers permuted = model.timesMs(other, otherSkews, Direction::Forward);
    for (size_t d = 0; d < order.size(); ++d)
      EXPECT_EQ(permuted[d], times[order[d]]);
  }
}

TEST_P(CommunicationModelTest, NoDeviceIsDoneBeforeTheLastHasStarted) {
  Topology topology = *parseTopology(GetParam());
  for (int i = 0; i < 50; ++i) {
    Traffic traffic = randomTraffic(topology, random);
    Numbers skews = randomSkews(topology, random);
    Numbers times = model.timesMs(traffic, skews, Direction::Backward);
    double last = *std::max_element(skews.begin(), skews.end());
    for (size_t d = 0; d < times.size(); ++d)
      EXPECT_GE(times[d] + skews[d], last);
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, CommunicationModelTest,
                         testing::Values("2xCPU", "5xCPU", "16xCPU", "2x3xCPU",
                                         "1+2+4xCPU"));

TEST_F(CommunicationModelTest, NothingToExchangeTakesTheWait) {
  Topology one = *parseTopology("1xCPU");
  EXPECT_THAT(model.timesMs({&one, {4}, {400}, {400}}, {}, Direction::Forward),
              ElementsAre(0.0));
  Topology two = *parseTopology("2xCPU");
  EXPECT_THAT(model.timesMs({&two, {0, 0}, {0, 0}, {0, 0}}, Numbers{0, 3},
                            Direction::Forward),
              ElementsAre(3.0, 0.0));
}

TEST_F(CommunicationModelTest, WithoutCorrectionItIsTheClosedForm) {
  for (CommunicationMember &member : parameters.members) {
    std::fill(member.head[2].weight.begin(), member.head[2].weight.end(), 0.f);
    member.head[2].bias = {0};
  }
  parameters.links.clear();
  CommunicationModel plain(parameters);
  Topology topology = *parseTopology("2x3xCPU");
  Traffic traffic = randomTraffic(topology, random);
  Numbers skews = randomSkews(topology, random);
  EXPECT_EQ(
      plain.timesMs(traffic, skews, Direction::Forward),
      makeRooflineModel()->communicationMs(traffic, skews, Direction::Forward));
}

TEST_F(CommunicationModelTest, CorrectionsHaveALimit) {
  for (CommunicationMember &member : parameters.members)
    member.head[2].bias = {1e6f};
  parameters.links.clear();
  CommunicationModel wild(parameters);
  Topology topology = *parseTopology("2xCPU");
  Traffic traffic{&topology, {1, 1}, {8e6, 8e6}, {8e6, 8e6}};
  // 20 us + 4 MB at 8 GB/s.
  EXPECT_NEAR(wild.timesMs(traffic, {}, Direction::Forward)[0],
              0.52 * std::exp(6.0), 1e-9);
}

TEST_F(CommunicationModelTest, MeasuredFiguresReplaceTheDefaultsOfAClass) {
  Topology topology = *parseTopology("2x3xCPU");
  std::vector<TopologyLevel> levels = model.usedLevels(topology);
  EXPECT_EQ(levels[0].latencyUs, 500);
  EXPECT_EQ(levels[0].bandwidthGBps, 1);
  EXPECT_EQ(levels[1].latencyUs, 200);
  EXPECT_EQ(levels[1].bandwidthGBps, 2);
  topology.levels[1].bandwidthGBps = 7;
  levels = model.usedLevels(topology);
  EXPECT_EQ(levels[1].latencyUs, 20);
  EXPECT_EQ(levels[1].bandwidthGBps, 7);
}

TEST_F(CommunicationModelTest, MembersThatAgreeHaveNoUncertainty) {
  Topology topology = *parseTopology("3xCPU");
  Traffic traffic = randomTraffic(topology, random);
  EXPECT_GT(model.uncertainty(traffic, {}, Direction::Forward), 1e-4);
  parameters.members = {parameters.members[0], parameters.members[0]};
  EXPECT_NEAR(CommunicationModel(parameters)
                  .uncertainty(traffic, {}, Direction::Forward),
              0, 1e-12);
}

TEST_F(CommunicationModelTest, CoversItsClassAndItsNumbersOfLevels) {
  EXPECT_TRUE(model.covers(*parseTopology("4xCPU")));
  EXPECT_TRUE(model.covers(*parseTopology("2x4xCPU")));
  EXPECT_FALSE(model.covers(*parseTopology("4xH200")));
  parameters.levelCounts = {1};
  EXPECT_FALSE(
      CommunicationModel(parameters).covers(*parseTopology("2x4xCPU")));
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

/// A model that has seen 2 to 8 devices and up to 1 MB.
CommunicationParameters narrowModel() {
  CommunicationParameters model = randomCommunicationModel(1);
  model.exchange.min[0] = std::log(2.0f);
  model.exchange.max[0] = std::log(8.0f);
  model.device.max[0] = model.device.max[1] = std::log1p(1e6f);
  return model;
}

std::vector<std::string> remarksOn(const CommunicationParameters &parameters,
                                   const Topology &topology, double bytes) {
  ShardWork work;
  work.forwardBytes = work.backwardBytes = bytes;
  std::vector<ShardSet> sets(topology.devices.size(),
                             {findDeviceClass("CPU"), {&work}});
  return CommunicationModel(parameters).remarks(sets, topology);
}

TEST(CommunicationRemarksTest, NoneInsideTheTrainingData) {
  EXPECT_THAT(remarksOn(narrowModel(), *parseTopology("8xCPU"), 9e5),
              IsEmpty());
}

TEST(CommunicationRemarksTest, MoreDevices) {
  EXPECT_THAT(remarksOn(narrowModel(), *parseTopology("9xCPU"), 9e5),
              ElementsAre("9 devices exchange; the communication model has "
                          "seen 2 to 8"));
}

TEST(CommunicationRemarksTest, MoreBytes) {
  EXPECT_THAT(remarksOn(narrowModel(), *parseTopology("8xCPU"), 2.5e6),
              ElementsAre("a device exchanges 2.5 MB; the communication model "
                          "has seen 0 to 1 MB"));
}

TEST(CommunicationRemarksTest, AnotherLink) {
  Topology topology = *parseTopology("8xCPU");
  topology.levels[0].latencyUs = 3;
  EXPECT_THAT(
      remarksOn(narrowModel(), topology, 9e5),
      ElementsAre(HasSubstr("the link of level 'node' (3 us, 8 GB/s)")));
}

TEST(CommunicationRemarksTest, AnotherNumberOfLevels) {
  CommunicationParameters model = narrowModel();
  model.levelCounts = {1};
  EXPECT_THAT(remarksOn(model, *parseTopology("2x4xCPU"), 9e5),
              ElementsAre(HasSubstr("another number of levels than 2")));
}

TEST(CommunicationRemarksTest, AnotherClass) {
  EXPECT_THAT(remarksOn(narrowModel(), *parseTopology("8xH200"), 9e5),
              testing::Contains("the communication model was trained on "
                                "devices of class CPU"));
}

TEST(CommunicationRemarksTest, SimulatedTimes) {
  CommunicationParameters model = narrowModel();
  model.measured = false;
  EXPECT_THAT(remarksOn(model, *parseTopology("8xCPU"), 9e5),
              ElementsAre(HasSubstr("simulated")));
}

TEST(CommunicationRemarksTest, MembersThatDisagree) {
  CommunicationParameters model = narrowModel();
  model.members.push_back(model.members[0]);
  model.members[1].head[2].bias[0] += 0.5f;
  EXPECT_THAT(remarksOn(model, *parseTopology("8xCPU"), 9e5),
              ElementsAre(HasSubstr("disagree by 25 %")));
}

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

TEST(CommunicationFeaturesTest, HandNumbers) {
  Topology topology = *parseTopology("1+3xCPU");
  Traffic traffic{
      &topology, {0, 0, 0, 0}, {4e6, 0, 2e6, 2e6}, {2e6, 2e6, 2e6, 2e6}};
  CommunicationFeatures features = featurizeExchange(
      traffic, topology.levels, Numbers{0, 3, 1, 0}, Direction::Backward);
  EXPECT_THAT(features.group, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(features.waitMs, ElementsAre(3, 0, 2, 3));
  // Device 0 reaches all its peers over the network: 50 us + 3 MB at 1.2 GB/s.
  EXPECT_NEAR(features.closedFormMs[0], 0.05 + 2.5, 1e-12);
  const float *device = features.device.data();
  EXPECT_NEAR(device[0], std::log1p(4e6), 1e-5);
  EXPECT_NEAR(device[1], std::log1p(2e6), 1e-5);
  EXPECT_EQ(device[2], 1);
  EXPECT_EQ(device[3], 1);
  EXPECT_NEAR(device[4], std::log1p(2.0), 1e-6);
  EXPECT_NEAR(device[6], std::log1p(3.0), 1e-6);
  EXPECT_NEAR(device[7], std::log1p(3 / 2.55), 1e-6);
  EXPECT_EQ(device[8], 0.5f);
  EXPECT_NEAR(device[9], std::log(2.55), 1e-6);
  EXPECT_NEAR(device[10], std::log(1e-3), 1e-5) << "no peer inside its node";
  EXPECT_NEAR(device[11], std::log(2.55), 1e-6);
  const float *exchange = features.exchange.data();
  EXPECT_NEAR(exchange[0], std::log(4.0), 1e-6);
  EXPECT_EQ(exchange[1], 2);
  EXPECT_NEAR(exchange[3], std::log1p(20.0), 1e-6);
  EXPECT_NEAR(exchange[4], std::log(8.0), 1e-6);
  EXPECT_NEAR(exchange[5], std::log(2.0), 1e-6);
  EXPECT_EQ(exchange[10], 0) << "no third level";
  EXPECT_THAT(std::vector<float>(exchange + 14, exchange + 17),
              ElementsAre(0, 0, 1));
  EXPECT_NEAR(exchange[17], std::log1p(8e6), 1e-5);
  EXPECT_NEAR(exchange[18], std::log1p(3.0), 1e-6);
}

} // namespace
