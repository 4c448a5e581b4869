//===- PlanningSnapshots.h - Statistics of several periods ------*- C++ -*-===//
//
// The key `snapshots` of neuroshard.planning.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANNINGSNAPSHOTS_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANNINGSNAPSHOTS_H

#include "DictionaryReader.h"
#include "neuroshard/Model/ShardingProblem.h"

#include "mlir/IR/Builders.h"

namespace neuroshard {

/// Reads the snapshots; tables and features of the problem must be there.
void readSnapshots(DictionaryReader &reader, ShardingProblem &problem);

/// The problem's snapshots, or null when there are none.
mlir::ArrayAttr writeSnapshots(const ShardingProblem &problem,
                               mlir::Builder &builder);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANNINGSNAPSHOTS_H
