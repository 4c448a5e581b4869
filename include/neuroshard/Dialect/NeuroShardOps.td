//===- NeuroShardOps.td - All ops --------------------------*- tablegen -*-===//
//
// One TableGen root, so that the ops are generated once.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_OPS_TD
#define NEUROSHARD_DIALECT_OPS_TD

include "neuroshard/Dialect/BundleOps.td"
include "neuroshard/Dialect/LogicalOps.td"
include "neuroshard/Dialect/PlanOps.td"
include "neuroshard/Dialect/ShardedOps.td"
include "neuroshard/Dialect/PartitionedOps.td"

#endif // NEUROSHARD_DIALECT_OPS_TD
