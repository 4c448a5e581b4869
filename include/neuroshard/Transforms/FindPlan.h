//===- FindPlan.h - The plan and the topology of a module -------*- C++ -*-===//

#ifndef NEUROSHARD_TRANSFORMS_FINDPLAN_H
#define NEUROSHARD_TRANSFORMS_FINDPLAN_H

#include "neuroshard/Dialect/NeuroShard.h"

namespace neuroshard {

/// The plan of this name, or, for an empty name, the only one of the module.
/// Null when there is none; an error when there are several or the name is
/// another op's.
mlir::FailureOr<ir::PlanOp> findPlan(mlir::ModuleOp module,
                                     llvm::StringRef name);

/// The name that an option gives a new plan: "plan" where it is empty.
llvm::StringRef newPlanName(llvm::StringRef option);

/// The only topology of the module; null when there is none, an error when
/// there are several.
mlir::FailureOr<ir::TopologyOp> findTopology(mlir::ModuleOp module);

/// The plan of that name, or, without a name, the only one; an error when there
/// is none.
mlir::FailureOr<ir::PlanOp> requirePlan(mlir::ModuleOp module,
                                        llvm::StringRef name);

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_FINDPLAN_H
