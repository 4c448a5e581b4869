//===- PlanningAttr.h - Constraints as neuroshard.planning ------*- C++ -*-===//
//
// What a workload file says that tables, lookups, topology and plan do not:
// constraints other than pins, reserves, memory model, target. Defaults are
// left out.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANNINGATTR_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANNINGATTR_H

#include "TableIndex.h"
#include "neuroshard/Model/ShardingProblem.h"

#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Reads the module's attribute into the problem; success when there is none.
/// The types of ids and results that it states are for a module without
/// lookups.
mlir::LogicalResult readPlanning(mlir::ModuleOp module,
                                 const TableIndex &tableOfSymbol,
                                 ShardingProblem &problem,
                                 Batch &typesWithoutLookups);

/// The attribute for a problem, or null when everything is default.
mlir::DictionaryAttr writePlanning(const ShardingProblem &problem,
                                   mlir::MLIRContext *context);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANNINGATTR_H
