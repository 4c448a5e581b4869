//===- DeviceClass.h - Hardware figures by device class ---------*- C++ -*-===//
///
/// \file
/// Figures per device class: usable memory, reserves, rates for the roofline,
/// links. docs/memory.md shows those of the built-in classes and a test keeps
/// the two the same; users define their own (DeviceClassFields.h).
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_MODEL_DEVICECLASS_H
#define NEUROSHARD_MODEL_DEVICECLASS_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace neuroshard {

/// What an all-to-all takes beside latency and bytes over its links, as the
/// library of the devices runs it. Counted on levels with the default links of
/// the class: figures that were fitted elsewhere have it in them.
struct ExchangeExtra {
  /// NCCL leaves its protocol of low latency where transfers get long: one of
  /// t us takes rampUs * t / (t + rampAtUs) more.
  double rampUs = 0;
  double rampAtUs = 1;
  /// Rate at which a device copies what it sends to itself. 0: not counted.
  double ownGBps = 0;

  bool operator==(const ExchangeExtra &) const = default;
};

/// What the figures of a class come from.
enum class FigureSource {
  Measured,  ///< by this project, or fitted to measurements of such a device
  OtherGpu,  ///< as measured on others, scaled by the data sheets
  DataSheet, ///< data sheets, and shares of them that others reach
  Estimate,  ///< of this project
  Stated,    ///< by the user who defined the class
};

/// "measured on such a device", "stated", ...
std::string sourceText(FigureSource source);

/// Kernels that take multiples of the times of another class's.
struct KernelScale {
  /// 0: they are not said to be like another's.
  double forward = 0;
  double backward = 0;

  bool operator==(const KernelScale &) const = default;
};

/// Figures of one device class. Bandwidths are what a copy reaches, not what
/// the data sheet says. Built-in classes and those that users define are never
/// destroyed, and two that are equal are one object.
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
  ExchangeExtra exchangeExtra = {};
  /// Rows read from and written to host memory, per device and direction.
  double hostBandwidthGBps;
  /// The disks of a host: transfers of 4 KiB at random, and bandwidth.
  double diskReadsPerSecond;
  double diskBandwidthGBps;

  /// Of links inside a node and between nodes, and of kernels.
  FigureSource linkSource = FigureSource::DataSheet;
  FigureSource networkSource = FigureSource::DataSheet;
  FigureSource kernelSource = FigureSource::DataSheet;
  /// Of the bandwidth of memory, and of the cache.
  FigureSource memorySource = FigureSource::DataSheet;
  FigureSource cacheSource = FigureSource::DataSheet;

  /// Whether it is a CPU, whose device memory is that of its host.
  bool isCpu = false;

  /// What the devices of a node reach together to other nodes, per direction,
  /// where they share a link. 0: they share none.
  double networkGroupBandwidthGBps = 0;
  /// The built-in class whose figures it has where its definition says nothing.
  const DeviceClass *like = nullptr;
  /// If set, its kernels take these multiples of those of `like`, as the model
  /// that was fitted to that class or else the closed form predicts them.
  KernelScale kernelScale = {};
  /// Bit i: its definition states deviceClassFields()[i].
  uint64_t stated = 0;
  bool isUserDefined = false;

  /// The class by whose model or figures kernels are predicted, before they are
  /// scaled.
  const DeviceClass &kernels() const {
    return kernelScale.forward > 0 && like ? *like : *this;
  }
  bool operator==(const DeviceClass &) const = default;
};

/// Per device and direction.
struct LinkFigures {
  double latencyUs = 0;
  double bandwidthGBps = 0;

  bool operator==(const LinkFigures &) const = default;
};

/// Links inside a node (level 0, the innermost) or between nodes.
LinkFigures defaultLink(const DeviceClass &deviceClass, size_t level);

/// Name of the built-in class of CPU devices.
inline constexpr std::string_view kCpuClass = "CPU";

/// Classes that users defined.
using DeviceClasses = std::span<const DeviceClass *const>;

/// All built-in classes.
std::span<const DeviceClass> deviceClasses();

/// The built-in class of this name, or null.
const DeviceClass *findDeviceClass(std::string_view name);

/// The class of this name in upper or lower case, built-in or one of `own`, or
/// null.
const DeviceClass *findDeviceClassInAnyCase(std::string_view name,
                                            DeviceClasses own = {});

/// "H200, A100-40GB, ...": for messages.
std::string deviceClassNames(DeviceClasses own = {});

/// "; did you mean 'H200'? Known: H200, ...": what follows in the message that
/// `name` is unknown.
std::string knownDeviceClasses(std::string_view name, DeviceClasses own = {});

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_DEVICECLASS_H
