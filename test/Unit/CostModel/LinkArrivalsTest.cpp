//===- LinkArrivalsTest.cpp - Arrivals over links of hosts, by hand -------===//

#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace neuroshard;
using testing::Each;
using testing::ElementsAre;

namespace {

/// Two hosts of two, each with one card of 25 MB/s and no latency.
Topology twoHosts() {
  Topology topology = *parseTopology("2x2xCPU@200mbit");
  for (TopologyLevel &level : topology.levels)
    level.latencyUs = 0;
  return topology;
}

Traffic traffic(const Topology &topology, std::vector<double> out,
                std::vector<double> in) {
  return {&topology, std::vector<double>(out.size(), 1), std::move(out),
          std::move(in)};
}

/// Of owners that send as many bytes, the same to each part of the batch.
Traffic results(const Topology &topology, const std::vector<double> &owners) {
  double sum = 0;
  for (double bytes : owners)
    sum += bytes;
  return traffic(topology, owners,
                 std::vector<double>(owners.size(),
                                     sum / static_cast<double>(owners.size())));
}

/// The same the other way.
Traffic gradients(const Topology &topology, const std::vector<double> &owners) {
  Traffic forward = results(topology, owners);
  return traffic(topology, forward.bytesIn, forward.bytesOut);
}

double largest(const std::vector<double> &values) {
  return *std::max_element(values.begin(), values.end());
}

std::vector<double> arrivals(const Traffic &traffic,
                             const std::vector<double> &starts,
                             Direction direction, double slowness = 1) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  double even = largest(model->communicationMs(traffic, {}, direction));
  return model->arrivalsMs(traffic, starts, slowness * even, direction);
}

TEST(LinkArrivalsTest, ALateDeviceHasTheLinkToItself) {
  Topology topology = twoHosts();
  Traffic traffic = results(topology, {4e6, 4e6, 4e6, 4e6});
  // Half of 8 MB leave each host.
  EXPECT_THAT(arrivals(traffic, {0, 0, 0, 0}, Direction::Forward), Each(160));
  // The last has 2 MB left for a link that is free by then.
  EXPECT_THAT(arrivals(traffic, {0, 0, 0, 100}, Direction::Forward), Each(180));
  // The link of its host begins with those of the other at 20.
  EXPECT_THAT(arrivals(traffic, {0, 0, 20, 30}, Direction::Forward), Each(180));
  EXPECT_THAT(arrivals(traffic, {300, 300, 300, 300}, Direction::Forward),
              Each(460));
}

TEST(LinkArrivalsTest, SlowerLinksAreAsMuchSlower) {
  Topology topology = twoHosts();
  Traffic traffic = results(topology, {4e6, 4e6, 4e6, 4e6});
  EXPECT_THAT(arrivals(traffic, {0, 0, 0, 100}, Direction::Forward, 2),
              Each(320));
  EXPECT_THAT(arrivals(traffic, {0, 0, 0, 200}, Direction::Forward, 2),
              Each(360));
}

TEST(LinkArrivalsTest, TheLeastGradientsOfAHostComeFirst) {
  Topology topology = twoHosts();
  Traffic traffic = gradients(topology, {6e6, 2e6, 4e6, 4e6});
  // Of 2 MB half comes from the other host, and as much for the neighbour.
  EXPECT_THAT(arrivals(traffic, {0, 0, 0, 0}, Direction::Backward),
              ElementsAre(160, 80, 160, 160));
}

TEST(LinkArrivalsTest, OneDeviceHasAllAtItsStart) {
  Topology topology = *parseTopology("1xCPU");
  EXPECT_THAT(arrivals(results(topology, {4e6}), {7}, Direction::Forward),
              ElementsAre(7));
}

TEST(LinkArrivalsTest, AStepHidesWhatTravelsBesideKernels) {
  Topology topology = twoHosts();
  std::vector<DeviceLoad> loads(4);
  for (DeviceLoad &load : loads)
    load.forwardBytes = load.backwardBytes = 4e6;
  loads[3].compute = {100, 50};
  loads[2].backwardBytes = 2e6;
  loads[3].backwardBytes = 6e6;
  CostBreakdown cost =
      composeCost(topology, loads, *makeRooflineModel(), ObjectiveOptions());
  EXPECT_DOUBLE_EQ(cost.exposedForwardCommunicationMs, 80);
  EXPECT_DOUBLE_EQ(cost.backwardCommunicationMs, 160);
  EXPECT_DOUBLE_EQ(cost.costMs, 180 + 160 + 50);
  // Its gradients come when those of the others still travel.
  std::swap(loads[2].backwardBytes, loads[3].backwardBytes);
  cost = composeCost(topology, loads, *makeRooflineModel(), ObjectiveOptions());
  EXPECT_DOUBLE_EQ(cost.backwardCommunicationMs, 160 - 50);
}

TEST(LinkArrivalsTest, EvenStartsTakeWhatTheExchangeTakes) {
  std::mt19937_64 random(1);
  for (const char *shape : {"8xH200", "2x8xA100-40GB", "2x2xCPU@200mbit",
                            "3x4xCPU@1gbit", "3+1xH100"})
    for (int round = 0; round < 20; ++round) {
      Topology topology = *parseTopology(shape);
      std::vector<double> owners, starts;
      for (size_t i = 0; i < topology.devices.size(); ++i) {
        owners.push_back(static_cast<double>(random() % 10'000'000));
        starts.push_back(static_cast<double>(random() % 100));
      }
      std::vector<double> zeros(owners.size());
      std::unique_ptr<CostModel> model = makeRooflineModel();
      Traffic forward = results(topology, owners);
      Traffic backward = gradients(topology, owners);
      double even =
          largest(model->communicationMs(forward, {}, Direction::Forward));
      EXPECT_NEAR(largest(arrivals(forward, zeros, Direction::Forward)), even,
                  1e-9 * even)
          << shape;
      EXPECT_NEAR(
          largest(arrivals(backward, zeros, Direction::Backward)),
          largest(model->communicationMs(backward, {}, Direction::Backward)),
          1e-9 * even)
          << shape;
      // Never before the last start, nor later than if all waited for it.
      double last = largest(starts);
      double skewed = largest(arrivals(forward, starts, Direction::Forward));
      EXPECT_GE(skewed, std::max(last, even)) << shape;
      EXPECT_LE(skewed, (last + even) * (1 + 1e-9)) << shape;
    }
}

} // namespace
