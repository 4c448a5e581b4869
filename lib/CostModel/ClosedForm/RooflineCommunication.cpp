//===- RooflineCommunication.cpp - Latency + bytes / bandwidth ------------===//

#include "RooflineCommunication.h"
#include "TransferTime.h"

#include <algorithm>

using namespace neuroshard;

namespace {

constexpr double kMsPerUs = 1e-3;

/// Calls visit(level's index, device, peers it reaches over that level's link).
template <typename Visit>
void forEachLink(std::span<const TopologyLevel> levels, Visit visit) {
  for (size_t l = 0; l < levels.size(); ++l) {
    bool innermost = l + 1 == levels.size();
    size_t device = 0;
    size_t inner = 0;
    for (int size : levels[l].groupSizes) {
      size_t end = device + static_cast<size_t>(size);
      while (device < end) {
        int innerSize = innermost ? 1 : levels[l + 1].groupSizes[inner++];
        for (size_t last = device + static_cast<size_t>(innerSize);
             device < last; ++device)
          visit(l, device, size - innerSize);
      }
    }
  }
}

double levelMs(const TopologyLevel &level, double bytes) {
  if (bytes <= 0)
    return 0;
  return level.latencyUs * kMsPerUs + bytesToMs(bytes, level.bandwidthGBps);
}

} // namespace

std::vector<double>
neuroshard::levelTimesMs(const Traffic &traffic,
                         std::span<const TopologyLevel> levels) {
  size_t devices = traffic.bytesOut.size();
  std::vector<double> times(levels.size() * devices);
  forEachLink(levels, [&](size_t level, size_t device, int peers) {
    double bytes = std::max(traffic.bytesOut[device], traffic.bytesIn[device]) *
                   peers / static_cast<double>(devices);
    times[level * devices + device] = levelMs(levels[level], bytes);
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
  forEachLink(topology.levels, [&](size_t level, size_t, int peers) {
    double bytes = totalBytes / devices * peers / devices;
    bound = std::max(bound, levelMs(topology.levels[level], bytes));
  });
  return bound;
}
