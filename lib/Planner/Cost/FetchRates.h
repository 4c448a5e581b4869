//===- FetchRates.h - Time of rows fetched from lower tiers -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_FETCHRATES_H
#define NEUROSHARD_LIB_PLANNER_COST_FETCHRATES_H

#include "neuroshard/Model/Topology.h"
#include "neuroshard/Planner/DeviceLoad.h"

#include <span>
#include <vector>

namespace neuroshard {

/// Of transfers to and from host memory, both ways at once.
double hostMemoryMs(const FetchLoad &load, double bandwidthGBps);
double diskMs(const FetchLoad &load, const Disk &disk);

/// How long the links to host memory and the disks of a topology take.
class FetchRates {
public:
  /// `devicesEach`: CostModel::devicesEach(). The topology must outlive it.
  FetchRates(const Topology &topology, int devicesEach);

  size_t hostCount() const { return disks.size(); }
  size_t hostOf(size_t device) const {
    return static_cast<size_t>(topology.devices[device].host);
  }
  /// Of a device's transfers.
  double hostMemoryMs(size_t device, const FetchLoad &load) const {
    return neuroshard::hostMemoryMs(load, bandwidthGBps[device]);
  }
  /// Of the transfers of all devices of a host.
  double diskMs(size_t host, const FetchLoad &load) const {
    return neuroshard::diskMs(load, disks[host]);
  }

private:
  const Topology &topology;
  std::vector<Disk> disks;
  std::vector<double> bandwidthGBps;
};

/// Whether a load fetches anything, rounding errors apart.
bool fetches(const DeviceLoad &load);

/// Of each device: its transfers with host memory, and those of its host with
/// disks, one after the other, as the engine moves them. Zeros where nothing is
/// fetched.
std::vector<double> fetchTimesMs(const Topology &topology,
                                 std::span<const DeviceLoad> loads,
                                 int devicesEach);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_FETCHRATES_H
