//===- DeviceClass.cpp - The table of defaults per device class -----------===//
///
/// \file
/// Memory bandwidths: what a device-to-device copy reaches (H200: 4.3 of
/// 4.8 TB/s measured; the A100s scaled alike from their data sheets). Kernel
/// efficiencies: of that bandwidth, after published figures of fused embedding
/// operators (forward 65 %; backward lower, because of its scattered updates).
/// CPU: a plain prefetching loop on 2 cores. Cache bandwidths, launch times,
/// link rates and rates to host memory (PCIe 5 and 4 x 16; a CPU's is its own)
/// are estimates.
//===----------------------------------------------------------------------===//

#include "neuroshard/Model/DeviceClass.h"

#include <array>

using namespace neuroshard;

static constexpr int64_t kMiB = int64_t{1} << 20;
static constexpr int64_t kGiB = int64_t{1} << 30;

/// The A100s differ in their memory alone.
static constexpr DeviceClass a100(std::string_view name, int64_t memoryBytes,
                                  double memoryBandwidthGBps) {
  return {.name = name,
          .memoryBytes = memoryBytes,
          .hostMemoryBytes = 1024 * kGiB,
          .denseReserveBytes = 1 * kGiB,
          .fragmentationReserveBytes = 3 * kGiB,
          .communicatorReserveBytes = 4 * kGiB,
          .memoryBandwidthGBps = memoryBandwidthGBps,
          .cacheBandwidthGBps = 4500,
          .cacheBytes = 40 * kMiB,
          .forwardEfficiency = 0.65,
          .backwardEfficiency = 0.45,
          .forwardLaunchUs = 10,
          .backwardLaunchUs = 60,
          .perShardUs = 0.5,
          .devicesPerNode = 8,
          .nodeBandwidthGBps = 230,
          .nodeLatencyUs = 15,
          .networkBandwidthGBps = 22,
          .networkLatencyUs = 30,
          .hostBandwidthGBps = 22};
}

static constexpr std::array<DeviceClass, 4> kClasses = {{
    {.name = "H200",
     .memoryBytes = 139 * kGiB,
     .hostMemoryBytes = 2048 * kGiB,
     .denseReserveBytes = 2 * kGiB,
     .fragmentationReserveBytes = 3 * kGiB,
     .communicatorReserveBytes = 4 * kGiB,
     .memoryBandwidthGBps = 4300,
     .cacheBandwidthGBps = 9000,
     .cacheBytes = 50 * kMiB,
     .forwardEfficiency = 0.65,
     .backwardEfficiency = 0.45,
     .forwardLaunchUs = 10,
     .backwardLaunchUs = 60,
     .perShardUs = 0.5,
     .devicesPerNode = 8,
     .nodeBandwidthGBps = 350,
     .nodeLatencyUs = 15,
     .networkBandwidthGBps = 45,
     .networkLatencyUs = 30,
     .hostBandwidthGBps = 50},
    a100("A100-80GB", 80 * kGiB, 1800),
    a100("A100-40GB", 40 * kGiB, 1400),
    {.name = kCpuClass,
     .memoryBytes = 16 * kGiB,
     .hostMemoryBytes = 64 * kGiB,
     .denseReserveBytes = 256 * kMiB,
     .fragmentationReserveBytes = 256 * kMiB,
     .communicatorReserveBytes = 0,
     .memoryBandwidthGBps = 35,
     .cacheBandwidthGBps = 100,
     .cacheBytes = 32 * kMiB,
     .forwardEfficiency = 0.5,
     .backwardEfficiency = 0.35,
     .forwardLaunchUs = 5,
     .backwardLaunchUs = 10,
     .perShardUs = 1,
     .devicesPerNode = 64,
     .nodeBandwidthGBps = 8,
     .nodeLatencyUs = 20,
     .networkBandwidthGBps = 1.2,
     .networkLatencyUs = 50,
     .hostBandwidthGBps = 35},
}};

std::span<const DeviceClass> neuroshard::deviceClasses() { return kClasses; }

const DeviceClass *neuroshard::findDeviceClass(std::string_view name) {
  for (const DeviceClass &deviceClass : kClasses)
    if (deviceClass.name == name)
      return &deviceClass;
  return nullptr;
}

std::string neuroshard::deviceClassNames() {
  std::string names;
  for (const DeviceClass &deviceClass : kClasses)
    names += (names.empty() ? "" : ", ") + std::string(deviceClass.name);
  return names;
}
