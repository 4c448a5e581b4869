//===- RooflineCommunication.cpp - Latency + bytes / bandwidth ------------===//

#include "RooflineCommunication.h"

#include <algorithm>

using namespace neuroshard;

namespace {

constexpr double kMsPerUs = 1e-3;

double bytesToMs(double bytes, double bandwidthGBps) {
  return bytes / (bandwidthGBps * 1e9) * 1e3;
}

/// Calls visit(level, first, last, inner sizes) ... per group of each level:
/// peers a device reaches over this level's link.
template <typename Visit>
void forEachLink(const Topology &topology, Visit visit) {
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    const TopologyLevel &level = topology.levels[l];
    bool innermost = l + 1 == topology.levels.size();
    int device = 0;
    size_t inner = 0;
    for (int size : level.groupSizes) {
      int end = device + size;
      while (device < end) {
        int innerSize =
            innermost ? 1 : topology.levels[l + 1].groupSizes[inner++];
        for (int last = device + innerSize; device < last; ++device)
          visit(level, device, size - innerSize);
      }
    }
  }
}

} // namespace

std::vector<double> neuroshard::linkTimesMs(const Traffic &traffic) {
  const Topology &topology = *traffic.topology;
  double devices = topology.deviceCount();
  std::vector<double> times(topology.devices.size());
  forEachLink(topology, [&](const TopologyLevel &level, int device, int peers) {
    size_t d = static_cast<size_t>(device);
    double bytes =
        std::max(traffic.bytesOut[d], traffic.bytesIn[d]) * peers / devices;
    if (bytes <= 0)
      return;
    double time =
        level.latencyUs * kMsPerUs + bytesToMs(bytes, level.bandwidthGBps);
    times[d] = std::max(times[d], time);
  });
  return times;
}

double neuroshard::linkBoundMs(const Topology &topology, double totalBytes) {
  // The shared direction is even: every device moves at least total / devices
  // of it, of which the share with its peers crosses the link.
  double devices = topology.deviceCount();
  double bound = 0;
  if (totalBytes <= 0)
    return 0;
  forEachLink(topology, [&](const TopologyLevel &level, int, int peers) {
    double bytes = totalBytes / devices * peers / devices;
    if (bytes > 0)
      bound = std::max(bound, level.latencyUs * kMsPerUs +
                                  bytesToMs(bytes, level.bandwidthGBps));
  });
  return bound;
}
