//===- GridTopology.cpp - Topology of a device grid -----------------------===//

#include "GridTopology.h"

#include "neuroshard/Model/Limits.h"

#include <algorithm>
#include <cmath>
#include <string>

using namespace neuroshard;

namespace {

/// An axis of more than one device, which becomes a level.
struct Axis {
  size_t index;
  /// Devices that agree in all axes before it.
  int64_t groupSize;
};

Diagnostics checkNumbers(std::string_view option, std::span<const double> list,
                         size_t rank, bool zeroAllowed) {
  if (!list.empty() && list.size() != rank)
    return {{std::string(option),
             "expected one number for each of the " + std::to_string(rank) +
                 " axes, got: " + std::to_string(list.size())}};
  for (double number : list)
    if (!std::isfinite(number) || number < 0 || (number == 0 && !zeroAllowed))
      return {{std::string(option),
               std::string("expected numbers ") +
                   (zeroAllowed ? "of at least 0" : "above 0") +
                   ", got: " + std::to_string(number)}};
  return {};
}

/// Number of devices, or an error about a size.
Expected<int64_t> countDevices(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 1)
      return failure("shape", "axis " + std::to_string(axis) +
                                  " must have at least 1 device, got: " +
                                  std::to_string(shape[axis]));
    if (shape[axis] > kMaxDevices / count)
      return failure("shape", "expected at most " +
                                  std::to_string(kMaxDevices) + " devices");
    count *= shape[axis];
  }
  return count;
}

class GridReader {
public:
  GridReader(std::span<const int64_t> shape, const GridDevices &devices,
             int64_t count)
      : devices(devices), count(count) {
    int64_t groupSize = count;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] > 1)
        axes.push_back({i, groupSize});
      groupSize /= shape[i];
    }
    if (axes.empty())
      axes.push_back({shape.size() - 1, 1});
  }

  Topology read();

private:
  bool isInNode(int64_t groupSize) const {
    return groupSize <= devices.devicesPerNode;
  }
  TopologyLevel levelOf(const Axis &axis) const;
  std::vector<int> nodes() const;
  void addNodes(Topology &topology) const;

  const GridDevices &devices;
  int64_t count;
  std::vector<Axis> axes;
};

/// Number of devices of each host: the largest groups of an axis that fit into
/// a node; if none does, the groups of the last axis cut into nodes.
std::vector<int> GridReader::nodes() const {
  std::vector<int> sizes;
  for (const Axis &axis : axes)
    if (isInNode(axis.groupSize)) {
      sizes.assign(static_cast<size_t>(count / axis.groupSize),
                   static_cast<int>(axis.groupSize));
      return sizes;
    }
  for (int64_t group = 0; group < count / axes.back().groupSize; ++group)
    for (int64_t rest = axes.back().groupSize; rest > 0;
         rest -= devices.devicesPerNode)
      sizes.push_back(
          static_cast<int>(std::min<int64_t>(rest, devices.devicesPerNode)));
  return sizes;
}

TopologyLevel GridReader::levelOf(const Axis &axis) const {
  const DeviceClass &known = *devices.deviceClass;
  bool inNode = isInNode(axis.groupSize);
  TopologyLevel level;
  level.name = "axis" + std::to_string(axis.index);
  level.groupSizes.assign(static_cast<size_t>(count / axis.groupSize),
                          static_cast<int>(axis.groupSize));
  level.bandwidthGBps = !devices.bandwidthGBps.empty()
                            ? devices.bandwidthGBps[axis.index]
                        : inNode ? known.nodeBandwidthGBps
                                 : known.networkBandwidthGBps;
  level.latencyUs = !devices.latencyUs.empty() ? devices.latencyUs[axis.index]
                    : inNode                   ? known.nodeLatencyUs
                                               : known.networkLatencyUs;
  return level;
}

/// If no axis lies inside a node, the nodes become a level, unless the caller
/// gives the links.
void GridReader::addNodes(Topology &topology) const {
  std::vector<int> sizes = nodes();
  const DeviceClass &known = *devices.deviceClass;
  if (!isInNode(axes.back().groupSize) && devices.bandwidthGBps.empty())
    topology.levels.push_back(
        {"node", sizes, known.nodeBandwidthGBps, known.nodeLatencyUs});
  for (int size : sizes) {
    Device device{std::string(known.name), devices.memoryBytes,
                  static_cast<int>(topology.hosts.size())};
    topology.devices.insert(topology.devices.end(), static_cast<size_t>(size),
                            device);
    topology.hosts.push_back({known.hostMemoryBytes});
  }
  // The names that topologies have everywhere else.
  if (topology.levels.front().groupSizes.size() < sizes.size())
    topology.levels.front().name = "cluster";
  for (TopologyLevel &level : topology.levels)
    if (level.groupSizes == sizes)
      level.name = "node";
}

Topology GridReader::read() {
  Topology topology;
  for (const Axis &axis : axes) {
    TopologyLevel level = levelOf(axis);
    if (topology.levels.empty() ||
        topology.levels.back().bandwidthGBps != level.bandwidthGBps ||
        topology.levels.back().latencyUs != level.latencyUs)
      topology.levels.push_back(std::move(level));
  }
  addNodes(topology);
  return topology;
}

} // namespace

Expected<Topology> neuroshard::gridTopology(std::span<const int64_t> shape,
                                            const GridDevices &devices) {
  if (shape.empty())
    return failure("shape", "a grid needs at least one axis");
  Expected<int64_t> count = countDevices(shape);
  if (!count)
    return tl::unexpected(count.error());
  Diagnostics errors =
      checkNumbers("bandwidth", devices.bandwidthGBps, shape.size(), false);
  if (errors.empty())
    errors = checkNumbers("latency", devices.latencyUs, shape.size(), true);
  if (!errors.empty())
    return tl::unexpected(errors);
  return GridReader(shape, devices, *count).read();
}
