//===- DeviceClass.h - Hardware figures by device class ---------*- C++ -*-===//
///
/// \file
/// The one table of defaults per device class: usable memory, reserves, rates
/// for the roofline, links. docs/memory.md shows it and a test keeps the two
/// the same.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_MODEL_DEVICECLASS_H
#define NEUROSHARD_MODEL_DEVICECLASS_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace neuroshard {

/// Defaults of one device class. Bandwidths are what a copy reaches, not what
/// the data sheet says.
struct DeviceClass {
  std::string_view name;

  /// Memory a process can use, per device and per host.
  int64_t memoryBytes;
  int64_t hostMemoryBytes;
  /// Held back for the dense model, for the allocator's fragmentation, and per
  /// communicator (once when there is more than one device).
  int64_t denseReserveBytes;
  int64_t fragmentationReserveBytes;
  int64_t communicatorReserveBytes;

  /// Device memory and last-level cache.
  double memoryBandwidthGBps;
  double cacheBandwidthGBps;
  int64_t cacheBytes;
  /// Share of the bandwidth the fused forward and backward kernels reach.
  double forwardEfficiency;
  double backwardEfficiency;
  /// Fixed time of one fused forward / backward call, and per shard in it.
  double forwardLaunchUs;
  double backwardLaunchUs;
  double perShardUs;

  /// Links inside a node and between nodes, per device and direction.
  int devicesPerNode;
  double nodeBandwidthGBps;
  double nodeLatencyUs;
  double networkBandwidthGBps;
  double networkLatencyUs;
  /// Rows read from and written to host memory, per device and direction.
  double hostBandwidthGBps;
};

/// Name of the class of CPU devices; devices of all other classes are GPUs.
inline constexpr std::string_view kCpuClass = "CPU";
constexpr bool isCpu(std::string_view deviceClass) {
  return deviceClass == kCpuClass;
}

/// All known classes.
std::span<const DeviceClass> deviceClasses();

/// The class of this name, or null.
const DeviceClass *findDeviceClass(std::string_view name);

/// "H200, A100-40GB, ...": for messages.
std::string deviceClassNames();

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_DEVICECLASS_H
