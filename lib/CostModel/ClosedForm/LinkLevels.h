//===- LinkLevels.h - Links of a topology, level by level -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_CLOSEDFORM_LINKLEVELS_H
#define NEUROSHARD_LIB_COSTMODEL_CLOSEDFORM_LINKLEVELS_H

#include "TransferTime.h"
#include "neuroshard/Planner/CostModel.h"

#include <span>
#include <string>
#include <vector>

namespace neuroshard {

inline constexpr double kMsPerUs = 1e-3;

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

/// Bytes of each device in one direction of an exchange.
class LinkBytes {
public:
  static LinkBytes out(const Traffic &traffic) {
    return LinkBytes(traffic, traffic.bytesOut, traffic.insideOut,
                     traffic.acrossOut, &Traffic::allBytesOut);
  }
  static LinkBytes in(const Traffic &traffic) {
    return LinkBytes(traffic, traffic.bytesIn, traffic.insideIn,
                     traffic.acrossIn, &Traffic::allBytesIn);
  }

  /// Bytes that, spread evenly over all devices, send as much over the links of
  /// a level as these do.
  std::span<const double> over(bool innermost) const {
    return inside.empty() ? everywhere : innermost ? innerLinks : outerLinks;
  }
  /// Of all ways.
  std::span<const double> all() const {
    return inside.empty() ? everywhere : std::span<const double>(sums);
  }
  double toItself(size_t device) const {
    double devices = static_cast<double>(everywhere.size());
    double bytes = everywhere[device] / devices;
    if (!inside.empty())
      bytes +=
          inside[device] / groupSize + across[device] * groupSize / devices;
    return bytes;
  }

private:
  LinkBytes(const Traffic &traffic, std::span<const double> everywhere,
            std::span<const double> inside, std::span<const double> across,
            std::vector<double> (Traffic::*ofAllWays)() const)
      : everywhere(everywhere), inside(inside), across(across) {
    if (inside.empty())
      return;
    groupSize = traffic.topology->levels.back().groupSizes.front();
    double groups = static_cast<double>(everywhere.size()) / groupSize;
    for (size_t i = 0; i < everywhere.size(); ++i) {
      innerLinks.push_back(everywhere[i] + inside[i] * groups);
      outerLinks.push_back(everywhere[i] + across[i]);
    }
    sums = (traffic.*ofAllWays)();
  }

  std::span<const double> everywhere, inside, across;
  double groupSize = 1;
  std::vector<double> innerLinks, outerLinks, sums;
};

/// Of a class whose default links the level has; none where it has others.
inline ExchangeExtra extraOf(const Topology &topology, size_t device,
                             const TopologyLevel &level) {
  const DeviceClass *known =
      findDeviceClass(topology, topology.devices[device].deviceClass);
  LinkFigures figures{level.latencyUs, level.bandwidthGBps};
  return known && (figures == defaultLink(*known, 0) ||
                   figures == defaultLink(*known, 1))
             ? known->exchangeExtra
             : ExchangeExtra();
}

/// extraOf() for one group after the other: most are of one class.
class ExtraFinder {
public:
  explicit ExtraFinder(const Topology &topology) : topology(topology) {}

  const ExchangeExtra &of(size_t device, const TopologyLevel &level) {
    const std::string &name = topology.devices[device].deviceClass;
    if (lastLevel != &level || *lastName != name) {
      found = extraOf(topology, device, level);
      lastLevel = &level;
      lastName = &name;
    }
    return found;
  }

private:
  const Topology &topology;
  const TopologyLevel *lastLevel = nullptr;
  const std::string *lastName = nullptr;
  ExchangeExtra found;
};

/// What an exchange takes beside the transfer over its links, `linkMs`.
/// `ownBytes`: of a device to itself.
inline double besideLinkMs(const TopologyLevel &level,
                           const ExchangeExtra &extra, double linkMs,
                           double ownBytes) {
  double ramp =
      extra.rampUs * kMsPerUs * linkMs / (linkMs + extra.rampAtUs * kMsPerUs);
  double own = extra.ownGBps > 0 ? bytesToMs(ownBytes, extra.ownGBps) : 0;
  return level.latencyUs * kMsPerUs + ramp + own;
}

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_CLOSEDFORM_LINKLEVELS_H
