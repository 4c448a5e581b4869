//===- SmallCommunication.h - Exchanges and models for tests ----*- C++ -*-===//

#ifndef NEUROSHARD_TEST_COSTMODEL_SMALLCOMMUNICATION_H
#define NEUROSHARD_TEST_COSTMODEL_SMALLCOMMUNICATION_H

#include "SmallModel.h"
#include "neuroshard/CostModel/CommunicationModel.h"

#include <random>

namespace neuroshard::test {

inline FeatureScale wideScale(int features) {
  size_t count = static_cast<size_t>(features);
  return {std::vector<float>(count, 3), std::vector<float>(count, 5),
          std::vector<float>(count, -10), std::vector<float>(count, 30)};
}

/// A model with random weights for CPUs on one or two levels.
inline CommunicationParameters randomCommunicationModel(int members = 3) {
  std::mt19937 random(7);
  CommunicationParameters model;
  model.device = wideScale(kDeviceFeatureCount);
  model.exchange = wideScale(kExchangeFeatureCount);
  for (int i = 0; i < members; ++i)
    model.members.push_back(
        {{randomLayer(kDeviceFeatureCount, kPhiHidden, random),
          randomLayer(kPhiHidden, kPhiWidth, random)},
         {randomLayer(4 * kPhiWidth + kExchangeFeatureCount, kContextHidden,
                      random),
          randomLayer(kContextHidden, kContextHidden, random),
          randomLayer(kContextHidden, 1, random)}});
  model.deviceClass = "CPU";
  model.backend = "gloo";
  model.levelCounts = {1, 2};
  model.links = {{200, 2}, {500, 1}};
  model.measured = true;
  model.card = R"({"machine": "a test"})";
  return model;
}

/// What random owners send in the forward direction.
inline Traffic randomTraffic(const Topology &topology, std::mt19937 &random) {
  std::uniform_real_distribution<double> logBytes(3, 17);
  Traffic traffic;
  traffic.topology = &topology;
  double total = 0;
  for (int d = 0; d < topology.deviceCount(); ++d) {
    double bytes = random() % 8 == 0 ? 0 : std::exp(logBytes(random));
    traffic.dims.push_back(bytes / 4096);
    traffic.bytesOut.push_back(std::round(bytes));
    total += traffic.bytesOut.back();
  }
  traffic.bytesIn.assign(traffic.bytesOut.size(),
                         total / topology.deviceCount());
  return traffic;
}

inline std::vector<double> randomSkews(const Topology &topology,
                                       std::mt19937 &random) {
  std::vector<double> skews = {0};
  while (static_cast<int>(skews.size()) < topology.deviceCount())
    skews.push_back(static_cast<double>(random() % 19000) / 1000);
  return skews;
}

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_COSTMODEL_SMALLCOMMUNICATION_H
