//===- RooflineCommunication.cpp - Latency + bytes / bandwidth ------------===//
///
/// \file
/// The formulas are in docs/planner.md.
//===----------------------------------------------------------------------===//

#include "RooflineCommunication.h"
#include "LinkLevels.h"
#include "TransferTime.h"

#include <algorithm>

using namespace neuroshard;

namespace {

/// Bytes of a device in an exchange, in the larger direction.
struct Moved {
  /// Over the links of the level: of the device, of its group.
  double crossing, ofGroup;
  /// To itself.
  double own;
};

double levelMs(const TopologyLevel &level, const ExchangeExtra &extra,
               const Moved &moved) {
  if (moved.crossing <= 0)
    return 0;
  double ms = bytesToMs(moved.crossing, level.bandwidthGBps);
  if (level.groupBandwidthGBps > 0)
    ms = std::max(ms, bytesToMs(moved.ofGroup, level.groupBandwidthGBps));
  return ms + besideLinkMs(level, extra, ms, moved.own);
}

} // namespace

std::vector<double>
neuroshard::levelTimesMs(const Traffic &traffic,
                         std::span<const TopologyLevel> levels) {
  size_t devices = traffic.bytesOut.size();
  double share = 1 / static_cast<double>(devices);
  std::vector<double> times(levels.size() * devices);
  ExtraFinder extras(*traffic.topology);
  LinkBytes sent = LinkBytes::out(traffic), received = LinkBytes::in(traffic);
  forEachInnerGroup(levels, [&](size_t level, const InnerGroup &group) {
    auto crossing = [&](double bytes) { return bytes * group.peers * share; };
    const ExchangeExtra &extra = extras.of(group.first, levels[level]);
    bool innermost = level + 1 == levels.size();
    std::span<const double> bytesOut = sent.over(innermost);
    std::span<const double> bytesIn = received.over(innermost);
    double out = 0, in = 0;
    for (size_t i = 0; i < group.size; ++i) {
      out += bytesOut[group.first + i];
      in += bytesIn[group.first + i];
    }
    for (size_t i = 0; i < group.size; ++i) {
      size_t device = group.first + i;
      double own = std::max(sent.toItself(device), received.toItself(device));
      times[level * devices + device] =
          levelMs(levels[level], extra,
                  {crossing(std::max(bytesOut[device], bytesIn[device])),
                   crossing(std::max(out, in)), own});
    }
  });
  return times;
}

std::vector<double> neuroshard::slowestLevelMs(std::span<const double> levelMs,
                                               size_t devices) {
  std::vector<double> times(devices);
  for (size_t i = 0; i < levelMs.size(); ++i)
    times[i % devices] = std::max(times[i % devices], levelMs[i]);
  return times;
}

std::vector<double> neuroshard::linkTimesMs(const Traffic &traffic) {
  return slowestLevelMs(levelTimesMs(traffic, traffic.topology->levels),
                        traffic.topology->devices.size());
}

double neuroshard::linkBoundMs(const Topology &topology, double totalBytes) {
  // The shared direction is even: every device moves at least total / devices
  // of it, of which the share with its peers crosses the link.
  double devices = topology.deviceCount();
  double bound = 0;
  forEachInnerGroup(topology.levels, [&](size_t level,
                                         const InnerGroup &group) {
    double own = totalBytes / devices / devices;
    double bytes = own * group.peers;
    bound = std::max(
        bound, levelMs(topology.levels[level],
                       extraOf(topology, group.first, topology.levels[level]),
                       {bytes, bytes * static_cast<double>(group.size), own}));
  });
  return bound;
}

double neuroshard::ownLinkBoundMs(const Topology &topology, double totalBytes) {
  double devices = topology.deviceCount();
  std::vector<int> fewestPeers(topology.levels.size(), topology.deviceCount());
  forEachInnerGroup(
      topology.levels, [&](size_t level, const InnerGroup &group) {
        fewestPeers[level] = std::min(fewestPeers[level], group.peers);
      });
  double bound = 0;
  for (size_t l = 0; l < topology.levels.size(); ++l)
    bound = std::max(bound,
                     bytesToMs(totalBytes / devices / devices * fewestPeers[l],
                               topology.levels[l].bandwidthGBps));
  return bound;
}
