//===- PlanPlaces.h - The op that a sentence is about -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_REMARKS_PLANPLACES_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_REMARKS_PLANPLACES_H

#include "neuroshard/Dialect/NeuroShard.h"

#include "llvm/ADT/StringMap.h"

namespace neuroshard {

/// Finds the tables and shards of a plan that sentences of the planner begin
/// with: "table 'user' is cut ...", "shard 'user_0': ...".
class PlanPlaces {
public:
  explicit PlanPlaces(ir::PlanOp plan);

  /// The location of the table or shard that `sentence` begins with, else that
  /// of the plan.
  mlir::Location of(llvm::StringRef sentence) const;
  mlir::Location ofTable(llvm::StringRef name) const;

private:
  mlir::Location plan;
  llvm::StringMap<mlir::Location> tables, shards;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_REMARKS_PLANPLACES_H
