//===- RooflineCommunication.cpp - Latency + bytes / bandwidth ------------===//

#include "RooflineCommunication.h"
#include "TransferTime.h"

#include <algorithm>

using namespace neuroshard;

namespace {

constexpr double kMsPerUs = 1e-3;

/// Devices of one group of the next inner level, or one device of the
/// innermost, and the peers that each reaches over a level's links.
struct InnerGroup {
  size_t first;
  size_t size;
  int peers;
};

/// Calls visit(level's index, group) for all levels.
template <typename Visit>
void forEachInnerGroup(std::span<const TopologyLevel> levels, Visit visit) {
  for (size_t l = 0; l < levels.size(); ++l) {
    bool innermost = l + 1 == levels.size();
    size_t device = 0;
    size_t inner = 0;
    for (int size : levels[l].groupSizes) {
      size_t end = device + static_cast<size_t>(size);
      while (device < end) {
        int innerSize = innermost ? 1 : levels[l + 1].groupSizes[inner++];
        visit(l, InnerGroup{device, static_cast<size_t>(innerSize),
                            size - innerSize});
        device += static_cast<size_t>(innerSize);
      }
    }
  }
}

/// Of a device that moves `bytes`, while its group moves `groupBytes`.
double levelMs(const TopologyLevel &level, double bytes, double groupBytes) {
  if (bytes <= 0)
    return 0;
  double ms = bytesToMs(bytes, level.bandwidthGBps);
  if (level.groupBandwidthGBps > 0)
    ms = std::max(ms, bytesToMs(groupBytes, level.groupBandwidthGBps));
  return level.latencyUs * kMsPerUs + ms;
}

} // namespace

std::vector<double>
neuroshard::levelTimesMs(const Traffic &traffic,
                         std::span<const TopologyLevel> levels) {
  size_t devices = traffic.bytesOut.size();
  std::vector<double> times(levels.size() * devices);
  forEachInnerGroup(levels, [&](size_t level, const InnerGroup &group) {
    auto crossing = [&](double bytes) {
      return bytes * group.peers / static_cast<double>(devices);
    };
    double out = 0, in = 0;
    for (size_t i = 0; i < group.size; ++i) {
      out += traffic.bytesOut[group.first + i];
      in += traffic.bytesIn[group.first + i];
    }
    for (size_t i = 0; i < group.size; ++i) {
      size_t device = group.first + i;
      times[level * devices + device] = levelMs(
          levels[level],
          crossing(std::max(traffic.bytesOut[device], traffic.bytesIn[device])),
          crossing(std::max(out, in)));
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
    double bytes = totalBytes / devices * group.peers / devices;
    bound = std::max(bound, levelMs(topology.levels[level], bytes,
                                    bytes * static_cast<double>(group.size)));
  });
  return bound;
}
