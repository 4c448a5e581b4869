//===- DeviceClassAttrs.h - Device classes of users in the IR ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_DEVICECLASSATTRS_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_DEVICECLASSATTRS_H

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/Topology.h"

namespace neuroshard {

/// Adds the classes that the attribute of a topology defines; errors are
/// emitted at the op.
mlir::LogicalResult readDeviceClasses(ir::TopologyOp op, Topology &topology);

/// Sets the attribute, if the topology has classes of users.
void writeDeviceClasses(const Topology &topology, ir::TopologyOp op);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_DEVICECLASSATTRS_H
