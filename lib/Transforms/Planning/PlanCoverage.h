//===- PlanCoverage.h - Exact cover of tables by a plan ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANCOVERAGE_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANCOVERAGE_H

#include "neuroshard/Dialect/NeuroShard.h"

namespace neuroshard {

/// An error unless the shards fill the table. `shards`: those of the table.
mlir::LogicalResult verifyCovered(ir::PlanOp plan, ir::TableOp table,
                                  llvm::ArrayRef<ir::ShardOp> shards);

/// Whether the shards of the plan fill every table of the module.
bool coversAllTables(ir::PlanOp plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANCOVERAGE_H
