//===- TopologyLevels.h - Groups of devices, level by level -----*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_TOPOLOGYLEVELS_H
#define NEUROSHARD_MODEL_TOPOLOGYLEVELS_H

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace neuroshard {

/// One level of the hierarchy. Devices are numbered through; the groups are
/// consecutive runs of them, of possibly unequal size. Two devices that share
/// a group of this level, but none of the next inner one, talk over its link.
struct TopologyLevel {
  std::string name;
  std::vector<int> groupSizes;
  /// Per device and direction, reached (not nominal).
  double bandwidthGBps = 0;
  double latencyUs = 0;
  /// What the devices of one group of the next inner level reach together, per
  /// direction, where they share a link: the card of a host. 0: they share
  /// none.
  double groupBandwidthGBps = 0;

  bool operator==(const TopologyLevel &) const = default;
};

/// Group of each device on one level.
std::vector<int> groupOfDevices(const TopologyLevel &level);

/// What is wrong with the groups of a level: their sum, more than one in the
/// outermost level, or one that lies in several groups of the level before.
/// Empty if nothing is.
std::string checkGroups(std::span<const TopologyLevel> levels, size_t level,
                        int64_t devices);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_TOPOLOGYLEVELS_H
