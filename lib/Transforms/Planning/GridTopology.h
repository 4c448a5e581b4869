//===- GridTopology.h - Topology of a device grid ---------------*- C++ -*-===//
//
// Without MLIR; the pass neuroshard-topology-from-grid reads the 'shard.grid'.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_GRIDTOPOLOGY_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_GRIDTOPOLOGY_H

#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/Topology.h"

#include <cstdint>
#include <span>

namespace neuroshard {

/// Properties of devices and links, which a grid does not have.
struct GridDevices {
  const DeviceClass *deviceClass = nullptr;
  /// Usable memory of each device.
  int64_t memoryBytes = 0;
  /// Most neighbouring devices that share a host.
  int devicesPerNode = 1;
  /// For the link along each axis, per device and direction; empty: as in the
  /// device class.
  std::span<const double> bandwidthGBps;
  std::span<const double> latencyUs;
};

/// The topology of devices numbered row by row: those that differ in the last
/// axis alone are neighbours. Each axis is a level, the first the outermost;
/// its groups hold the devices that agree in the axes before it. Axes of one
/// device make no level; of neighbouring levels with the same link the outer
/// one stays. Errors name an option of the pass, or "shape".
Expected<Topology> gridTopology(std::span<const int64_t> shape,
                                const GridDevices &devices);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_GRIDTOPOLOGY_H
