//===- FetchRates.cpp - Time of rows fetched from lower tiers -------------===//

#include "FetchRates.h"

#include "neuroshard/Model/DeviceClass.h"

#include <algorithm>
#include <numeric>

using namespace neuroshard;

FetchLoad neuroshard::fetchOf(Tier tier, double rows, int64_t recordBytes,
                              StepMode mode) {
  bool writes = mode == StepMode::Training;
  FetchLoad load;
  load.rows = rows;
  auto bytes = static_cast<double>(recordBytes);
  if (tier == Tier::Dram) {
    load.hostReadBytes = rows * bytes;
    load.hostWriteBytes = writes ? rows * bytes : 0;
    return load;
  }
  // Records lie one after the other and begin at multiples of this.
  int64_t step = std::gcd(recordBytes, kDiskBlockBytes);
  auto blockBytes = static_cast<double>(kDiskBlockBytes + recordBytes - step);
  bool isWholeBlocks = step == kDiskBlockBytes;
  double transfers = !writes ? 1 : isWholeBlocks ? 2 : 3;
  load.diskTransfers = transfers * rows;
  load.diskBytes = transfers * rows * blockBytes;
  return load;
}

double neuroshard::hostMemoryMs(const FetchLoad &load, double bandwidthGBps) {
  double bytes = std::max({0.0, load.hostReadBytes, load.hostWriteBytes});
  return bytes / (bandwidthGBps * 1e6);
}

double neuroshard::diskMs(const FetchLoad &load, const Disk &disk) {
  return std::max({0.0, load.diskTransfers / disk.readsPerSecond * 1e3,
                   load.diskBytes / (disk.bandwidthGBps * 1e6)});
}

FetchRates::FetchRates(const Topology &topology, int devicesEach)
    : topology(topology), disks(disksOf(topology)) {
  for (const Device &device : topology.devices)
    bandwidthGBps.push_back(
        devicesEach *
        findDeviceClass(topology, device.deviceClass)->hostBandwidthGBps);
}

bool neuroshard::fetches(const DeviceLoad &load) {
  return load.fetch.rows > 1e-6;
}

std::vector<double> neuroshard::fetchTimesMs(const Topology &topology,
                                             std::span<const DeviceLoad> loads,
                                             int devicesEach) {
  std::vector<double> times(loads.size());
  if (std::ranges::none_of(loads, fetches))
    return times;
  FetchRates rates(topology, devicesEach);
  std::vector<FetchLoad> ofHosts(rates.hostCount());
  for (size_t i = 0; i < loads.size(); ++i)
    addFetches(ofHosts[rates.hostOf(i)], loads[i].fetch, 1);
  for (size_t i = 0; i < loads.size(); ++i)
    times[i] = rates.hostMemoryMs(i, loads[i].fetch) +
               rates.diskMs(rates.hostOf(i), ofHosts[rates.hostOf(i)]);
  return times;
}
