//===- PlacedTables.h - Tables of a module with their shards ----*- C++ -*-===//
//
// For the passes after planning.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLACEDTABLES_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLACEDTABLES_H

#include "neuroshard/Dialect/NeuroShard.h"

#include "llvm/ADT/MapVector.h"

namespace neuroshard {

struct TablePlacement {
  ir::TableOp table;
  /// In the order of the plan.
  llvm::SmallVector<ir::ShardOp> shards;
  /// Every device has the whole table.
  bool replicated = false;
  /// Else: some shards have copies, which exchange sums of gradients: they do
  /// not drift.
  bool copied = false;
  /// See needsNormExchange() of Model.
  bool twoPhase = false;
};

/// Every table of a module under a plan that covers all of them.
class PlacedTables {
public:
  /// An error on the first table that is not covered.
  static mlir::FailureOr<PlacedTables> of(ir::PlanOp plan);

  const TablePlacement &operator[](mlir::StringAttr table) const {
    return tables.find(table)->second;
  }
  const TablePlacement &operator[](ir::LookupAttr lookup) const {
    return (*this)[lookup.getTable().getAttr()];
  }

  ir::PlanOp plan;
  ir::TopologyOp topology;
  llvm::MapVector<mlir::StringAttr, TablePlacement> tables;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLACEDTABLES_H
