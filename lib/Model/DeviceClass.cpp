//===- DeviceClass.cpp - The table of defaults per device class -----------===//
///
/// \file
/// Where the figures come from (models/data/gpu_measurements.csv unless said):
///
/// - Links inside nodes with switches, and what exchanges take beside them:
///   `python -m neuroshard.collect.gpu_links` fits them to sweeps of A100,
///   H100, B200, B300 and GB200. H200 has the links of the H100. AMD GPUs reach
///   the share of their nominal bandwidth that an MI355X reached at 8 GiB.
///   L40S: its own sweep on 8 GPUs, which is as poor as it looks; A10G and L4,
///   without links of their own too, take it. H100-PCIe: that of the RTX PRO
///   6000.
/// - Links between nodes: 0.9 of the nominal rate of the usual cards.
/// - Memory bandwidth: what copies reach, where they were measured (A100, H100,
///   H200, B200, GB200, L40S through the L40, MI300X), else 0.85 of the data
///   sheet. Caches likewise; those of B200, B300, GB200, A10G, L4 and AMD are
///   estimates.
/// - Kernel efficiencies: of that bandwidth. H100 and H200: our kernels, of 32
///   tables of one shape (docs/gpu-results.md); tables of many shapes take
///   longer. Others: published figures of fused embedding operators (forward
///   65 %; backward lower, because of its scattered updates).
/// - CPU: a plain prefetching loop on 2 cores.
/// - Launch times and rates to host memory (PCIe 5 and 4 x 16; GB200 measured;
///   a CPU's is its own) are estimates.
/// - Disks of hosts with GPUs: one NVMe drive, Samsung's PM9A3 as announced
///   (6.5 GB/s, 900,000 random reads and 200,000 writes a second; heise online,
///   15 May 2020), of whose transfers a third are writes; of CPUs, the
///   virtual disk of docs/tiers.md, its bandwidth as `dd` reads it.
//===----------------------------------------------------------------------===//

#include "neuroshard/Model/DeviceClass.h"

#include "UpperCase.h"

#include "neuroshard/Support/ClosestName.h"

#include <array>
#include <iterator>

using namespace neuroshard;

static constexpr int64_t kMiB = int64_t{1} << 20;
static constexpr int64_t kGiB = int64_t{1} << 30;

/// As fitted to the GPUs with links that were swept.
static constexpr ExchangeExtra kNccl = {
    .rampUs = 33.3, .rampAtUs = 40.7, .ownGBps = 951};

namespace {

constexpr FigureSource kMeasured = FigureSource::Measured;
constexpr FigureSource kOtherGpu = FigureSource::OtherGpu;
constexpr FigureSource kDataSheet = FigureSource::DataSheet;

/// What differs among GPUs.
struct Gpu {
  std::string_view name;
  int64_t memoryGiB, hostMemoryGiB, denseReserveGiB;
  double memoryGBps, cacheGBps;
  int64_t cacheMiB;
  FigureSource kernelSource;
  /// Inside a node.
  LinkFigures node;
  ExchangeExtra extra;
  FigureSource linkSource;
  double networkGBps, hostGBps;
  /// GB200: a rack, whose devices share a switch.
  int devicesPerNode = 8;
  double forwardEfficiency = 0.65, backwardEfficiency = 0.45;
};

constexpr FigureSource memorySource(std::string_view name) {
  if (name == "L40S")
    return kOtherGpu;
  for (std::string_view copied :
       {"A100-80GB", "A100-40GB", "H100", "H200", "B200", "GB200", "MI300X"})
    if (name == copied)
      return kMeasured;
  return kDataSheet;
}

constexpr FigureSource cacheSource(std::string_view name) {
  for (std::string_view estimated :
       {"B200", "B300", "GB200", "A10G", "L4", "MI300X", "MI355X"})
    if (name == estimated)
      return FigureSource::Estimate;
  return memorySource(name);
}

constexpr DeviceClass classOf(const Gpu &gpu) {
  return {.name = gpu.name,
          .memoryBytes = gpu.memoryGiB * kGiB,
          .hostMemoryBytes = gpu.hostMemoryGiB * kGiB,
          .denseReserveBytes = gpu.denseReserveGiB * kGiB,
          .fragmentationReserveBytes = 3 * kGiB,
          .communicatorReserveBytes = 4 * kGiB,
          .memoryBandwidthGBps = gpu.memoryGBps,
          .cacheBandwidthGBps = gpu.cacheGBps,
          .cacheBytes = gpu.cacheMiB * kMiB,
          .forwardEfficiency = gpu.forwardEfficiency,
          .backwardEfficiency = gpu.backwardEfficiency,
          .forwardLaunchUs = 10,
          .backwardLaunchUs = 60,
          .perShardUs = 0.5,
          .devicesPerNode = gpu.devicesPerNode,
          .nodeBandwidthGBps = gpu.node.bandwidthGBps,
          .nodeLatencyUs = gpu.node.latencyUs,
          .networkBandwidthGBps = gpu.networkGBps,
          .networkLatencyUs = 30,
          .exchangeExtra = gpu.extra,
          .hostBandwidthGBps = gpu.hostGBps,
          .diskReadsPerSecond = 415e3,
          .diskBandwidthGBps = 6.5,
          .linkSource = gpu.linkSource,
          .kernelSource = gpu.kernelSource,
          .memorySource = memorySource(gpu.name),
          .cacheSource = cacheSource(gpu.name)};
}

constexpr LinkFigures kA100Links = {15, 197}, kHopperLinks = {10.9, 372};
/// Through the host.
constexpr LinkFigures kHostLinks = {160, 1.34};

// clang-format off
constexpr Gpu kGpus[] = {
    // name, memory, host, dense | memory, cache, its size, source | in a node, source | out, host
    {"H200", 139, 2048, 2, 4300, 9000, 50, kMeasured, kHopperLinks, kNccl, kOtherGpu, 45, 50, 8, 1, 0.45},
    {"H100", 79, 2048, 2, 2850, 7000, 50, kMeasured, kHopperLinks, kNccl, kMeasured, 45, 50, 8, 1, 0.5},
    {"H100-PCIe", 79, 1024, 1, 1770, 6900, 50, kOtherGpu, {22.8, 16.5}, {}, kOtherGpu, 45, 50},
    {"A100-80GB", 80, 1024, 1, 1800, 4500, 40, kOtherGpu, kA100Links, kNccl, kMeasured, 22, 22},
    {"A100-40GB", 40, 1024, 1, 1400, 4500, 40, kOtherGpu, kA100Links, kNccl, kMeasured, 22, 22},
    {"B200", 178, 2048, 2, 6550, 12000, 126, kOtherGpu, {15, 650}, kNccl, kMeasured, 45, 50},
    {"B300", 267, 2048, 2, 6590, 12000, 126, kOtherGpu, {14.2, 682}, kNccl, kMeasured, 90, 50},
    {"GB200", 184, 18 * 960, 2, 6500, 12000, 126, kOtherGpu, {15.1, 663}, kNccl, kMeasured, 45, 200, 72},
    {"MI300X", 191, 2048, 2, 4300, 11000, 256, kDataSheet, {40, 322}, kNccl, kDataSheet, 45, 50},
    {"MI355X", 287, 2048, 2, 6480, 14000, 256, kDataSheet, {40, 383}, kNccl, kMeasured, 45, 50},
    {"L40S", 44, 1024, 1, 770, 5240, 96, kOtherGpu, kHostLinks, {}, kMeasured, 5.6, 22},
    {"A10G", 22, 512, 1, 510, 2000, 6, kDataSheet, kHostLinks, {}, kOtherGpu, 1.4, 22},
    {"L4", 22, 512, 1, 255, 2500, 48, kDataSheet, kHostLinks, {}, kOtherGpu, 1.4, 22},
};
// clang-format on

constexpr DeviceClass kCpu = {.name = kCpuClass,
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
                              .hostBandwidthGBps = 35,
                              .diskReadsPerSecond = 75e3,
                              .diskBandwidthGBps = 1.5,
                              .linkSource = kMeasured,
                              .kernelSource = kMeasured,
                              .memorySource = kMeasured,
                              .cacheSource = kMeasured,
                              .isCpu = true};

constexpr auto makeClasses() {
  std::array<DeviceClass, std::size(kGpus) + 1> classes = {};
  for (size_t i = 0; i < std::size(kGpus); ++i)
    classes[i] = classOf(kGpus[i]);
  classes.back() = kCpu;
  return classes;
}

constexpr auto kClasses = makeClasses();

} // namespace

std::string neuroshard::sourceText(FigureSource source) {
  switch (source) {
  case FigureSource::Measured:
    return "measured on such a device";
  case FigureSource::OtherGpu:
    return "measured on other devices";
  case FigureSource::DataSheet:
    return "of data sheets";
  case FigureSource::Estimate:
    return "estimated";
  case FigureSource::Stated:
    return "stated by its definition";
  }
  return "";
}

std::span<const DeviceClass> neuroshard::deviceClasses() { return kClasses; }

const DeviceClass *neuroshard::findDeviceClass(std::string_view name) {
  for (const DeviceClass &deviceClass : kClasses)
    if (deviceClass.name == name)
      return &deviceClass;
  return nullptr;
}

static std::vector<std::string> namesOf(DeviceClasses own) {
  std::vector<std::string> names;
  for (const DeviceClass *deviceClass : own)
    names.emplace_back(deviceClass->name);
  for (const DeviceClass &deviceClass : kClasses)
    names.emplace_back(deviceClass.name);
  return names;
}

const DeviceClass *neuroshard::findDeviceClassInAnyCase(std::string_view name,
                                                        DeviceClasses own) {
  std::string upper = inUpperCase(name);
  for (const DeviceClass *deviceClass : own)
    if (inUpperCase(deviceClass->name) == upper)
      return deviceClass;
  for (const DeviceClass &deviceClass : kClasses)
    if (inUpperCase(deviceClass.name) == upper)
      return &deviceClass;
  return nullptr;
}

std::string neuroshard::knownDeviceClasses(std::string_view name,
                                           DeviceClasses own) {
  std::string suggestion = didYouMean(inUpperCase(name), namesOf(own));
  return (suggestion.empty() ? "; known: " : suggestion + " Known: ") +
         deviceClassNames(own);
}

LinkFigures neuroshard::defaultLink(const DeviceClass &deviceClass,
                                    size_t level) {
  return level == 0 ? LinkFigures{deviceClass.nodeLatencyUs,
                                  deviceClass.nodeBandwidthGBps}
                    : LinkFigures{deviceClass.networkLatencyUs,
                                  deviceClass.networkBandwidthGBps};
}

std::string neuroshard::deviceClassNames(DeviceClasses own) {
  std::string names;
  for (const std::string &name : namesOf(own))
    names += (names.empty() ? "" : ", ") + name;
  return names;
}
