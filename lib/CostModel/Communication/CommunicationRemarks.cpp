//===- CommunicationRemarks.cpp - Remarks on weak predictions -------------===//

#include "neuroshard/CostModel/CommunicationModel.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace neuroshard;

namespace {

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

/// The exchange of one direction: see Traffic.
Traffic trafficOf(std::span<const ShardSet> sets, const Topology &topology,
                  Direction direction) {
  Traffic traffic{.topology = &topology,
                  .dims = std::vector<double>(sets.size()),
                  .bytesOut = std::vector<double>(sets.size()),
                  .bytesIn = std::vector<double>(sets.size())};
  double total = 0;
  for (size_t d = 0; d < sets.size(); ++d)
    for (const ShardWork *shard : sets[d].shards) {
      double bytes = direction == Direction::Input     ? shard->inputBytes
                     : direction == Direction::Forward ? shard->forwardBytes
                                                       : shard->backwardBytes;
      traffic.bytesOut[d] += bytes;
      total += bytes;
    }
  std::fill(traffic.bytesIn.begin(), traffic.bytesIn.end(),
            total / static_cast<double>(sets.size()));
  if (direction != Direction::Forward)
    std::swap(traffic.bytesOut, traffic.bytesIn);
  return traffic;
}

double mostBytes(const Traffic &traffic) {
  return std::max(
      *std::max_element(traffic.bytesOut.begin(), traffic.bytesOut.end()),
      *std::max_element(traffic.bytesIn.begin(), traffic.bytesIn.end()));
}

/// "16 devices exchange; the communication model has seen 2 to 8".
std::string outside(const std::string &found, const std::string &low,
                    const std::string &high) {
  return found + "; the communication model has seen " + low + " to " + high;
}

} // namespace

std::vector<std::string>
CommunicationModel::remarks(std::span<const ShardSet> sets,
                            const Topology &topology) const {
  std::vector<std::string> result;
  if (!measured())
    result.push_back("exchanges are predicted by a model of simulated times");
  bool sameClass = std::all_of(topology.devices.begin(), topology.devices.end(),
                               [&](const Device &device) {
                                 return device.deviceClass == deviceClass();
                               });
  if (!sameClass)
    result.push_back(
        "the communication model was trained on devices of class " +
        deviceClass());
  else if (!covers(topology))
    result.push_back("the communication model was trained on topologies of "
                     "another number of levels than " +
                     std::to_string(topology.levels.size()));
  if (topology.deviceCount() < 2)
    return {}; // nobody to exchange with
  auto [fewest, most] = deviceCounts();
  if (topology.deviceCount() < fewest || topology.deviceCount() > most)
    result.push_back(
        outside(std::to_string(topology.deviceCount()) + " devices exchange",
                std::to_string(fewest), std::to_string(most)));
  double bytes = 0, spread = 0;
  for (Direction direction :
       {Direction::Input, Direction::Forward, Direction::Backward}) {
    Traffic traffic = trafficOf(sets, topology, direction);
    bytes = std::max(bytes, mostBytes(traffic));
    if (bytes > 0)
      spread = std::max(spread, uncertainty(traffic, {}, direction));
  }
  if (bytes > mostDeviceBytes())
    result.push_back(outside("a device exchanges " + text(bytes / 1e6) + " MB",
                             "0", text(mostDeviceBytes() / 1e6) + " MB"));
  for (const TopologyLevel &level : usedLevels(topology))
    if (!knowsLink(level))
      result.push_back("the link of level '" + level.name + "' (" +
                       text(level.latencyUs) + " us, " +
                       text(level.bandwidthGBps) +
                       " GB/s) is unlike those that the communication model "
                       "has seen; its corrections of the closed form may not "
                       "fit");
  if (spread > kNotableDisagreement)
    result.push_back("the members of the communication model disagree by " +
                     text(100 * spread) + " % on these exchanges");
  return result;
}
