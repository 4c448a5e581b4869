//===- ExchangeSlowness.cpp - Devices that exchange slower ----------------===//

#include "ExchangeSlowness.h"

#include "Cost/StagedExchange.h"

#include <algorithm>
#include <functional>

using namespace neuroshard;

/// Do equal loads take all devices equally long to exchange? Yes if they are of
/// one class and each level has groups of one size.
static bool areAlike(const Topology &topology) {
  auto differs = [](const auto &list) {
    return std::adjacent_find(list.begin(), list.end(),
                              std::not_equal_to<>()) != list.end();
  };
  return std::none_of(topology.levels.begin(), topology.levels.end(),
                      [&](const TopologyLevel &level) {
                        return differs(level.groupSizes);
                      }) &&
         std::all_of(topology.devices.begin(), topology.devices.end(),
                     [&](const Device &device) {
                       return device.deviceClass ==
                              topology.devices.front().deviceClass;
                     });
}

std::array<std::vector<double>, 3>
neuroshard::exchangeSlowness(const SearchContext &context,
                             std::span<const DeviceLoad> loads) {
  std::array<std::vector<double>, 3> slowness;
  const Topology &topology = context.problem.topology;
  if (areAlike(topology))
    return slowness;
  DeviceLoad mean;
  for (const DeviceLoad &load : loads)
    addLoads(mean, load, 1 / static_cast<double>(loads.size()));
  std::vector<DeviceLoad> even(loads.size(), mean);
  for (Direction direction :
       {Direction::Input, Direction::Forward, Direction::Backward}) {
    std::vector<double> times =
        StagedExchange(context.model, topology, even, {}, direction).timesMs();
    double fastest = *std::min_element(times.begin(), times.end());
    if (fastest <= 0)
      continue;
    for (double &time : times)
      time /= fastest;
    slowness[static_cast<size_t>(direction)] = std::move(times);
  }
  return slowness;
}
