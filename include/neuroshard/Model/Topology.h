//===- Topology.h - Devices, their groups, links and hosts ------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_TOPOLOGY_H
#define NEUROSHARD_MODEL_TOPOLOGY_H

#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/Reserves.h"
#include "neuroshard/Model/TopologyLevels.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

struct Device {
  /// Name of a built-in DeviceClass, or of one of Topology::ownClasses.
  std::string deviceClass;
  /// Usable device memory (tier "hbm").
  int64_t memoryBytes = 0;
  /// Index into Topology::hosts.
  int host = 0;
  /// As measured there (`neuroshard calibrate`).
  Reserves reserves = {};

  bool operator==(const Device &) const = default;
};

/// The disks of a host together (tier "ssd"), shared by the host's devices.
/// What is 0 is not known: disksOf().
struct Disk {
  /// Usable bytes; 0: without limit.
  int64_t bytes = 0;
  /// Random reads of 4 KiB; writes count as reads.
  double readsPerSecond = 0;
  double bandwidthGBps = 0;

  bool operator==(const Disk &) const = default;
};

struct Host {
  /// Usable host memory (tier "dram"), shared by the host's devices.
  int64_t memoryBytes = 0;
  Disk disk = {};

  bool operator==(const Host &) const = default;
};

/// Levels from the outermost (one group: everything) to the innermost. Each
/// level's groups lie inside groups of the one before.
struct Topology {
  std::vector<TopologyLevel> levels;
  std::vector<Device> devices;
  std::vector<Host> hosts;
  /// Device classes that users defined: see defineDeviceClass().
  std::vector<const DeviceClass *> ownClasses = {};

  int deviceCount() const { return static_cast<int>(devices.size()); }
  bool operator==(const Topology &) const = default;
};

/// The class of this name, one of the topology's own or a built-in one, or
/// null.
const DeviceClass *findDeviceClass(const Topology &topology,
                                   std::string_view name);

/// Whether a device's class, which must be known, is one of CPUs.
bool isCpu(const Topology &topology, const Device &device);

/// The disks of each host, with the rates of the class of its first device
/// where they are not known.
std::vector<Disk> disksOf(const Topology &topology);

/// Everything wrong with a topology; empty when it is sound.
Diagnostics check(const Topology &topology);

/// Builds a topology from a short text, with the defaults of the device class.
///
///   8xH200               one node of 8
///   2x8xA100-40GB        2 nodes of 8
///   8+4xA100-40GB        nodes of 8 and of 4
///   4xCPU@2GiB           2 GiB of usable memory per device
///   2x4xCPU@200mbit      the devices of a node share 200 Mbit/s to the others
///   4xaws:p5.48xlarge    4 nodes as a cloud rents them (CloudNodes.h)
///   4xp5.48xlarge        the same
///
/// A single count larger than a node of the class is cut into nodes:
/// 256xH200 is 32x8xH200. Each node is a host. Sizes: see parseByteSize().
/// `own`: classes that users defined, which the text may name as well.
Expected<Topology> parseTopology(std::string_view text, DeviceClasses own = {});

/// "192GiB", "40 GB", "4096MiB" or "512B"; a number alone is refused.
Expected<int64_t> parseByteSize(std::string_view text);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_TOPOLOGY_H
