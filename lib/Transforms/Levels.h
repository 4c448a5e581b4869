//===- Levels.h - Lowering level of an op -----------------------*- C++ -*-===//
//
// For the passes that verify a level.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_LEVELS_H
#define NEUROSHARD_LIB_TRANSFORMS_LEVELS_H

#include "neuroshard/Dialect/NeuroShard.h"

namespace neuroshard {

/// Ops of the logical and the planned level.
inline bool isLogicalStep(mlir::Operation *op) {
  return mlir::isa<ir::LookupOp, ir::UpdateOp, ir::WeightsGradientOp>(op);
}

/// Ops on distributed values.
inline bool isSharded(mlir::Operation *op) {
  return mlir::isa<ir::ScatterBatchOp, ir::GatherBatchOp, ir::DistributeIdsOp,
                   ir::FusedLookupOp, ir::CombineOp, ir::DistributeGradientsOp,
                   ir::FusedUpdateOp, ir::ReduceRowsOp, ir::ExchangeCopiesOp,
                   ir::ExchangeNormsOp, ir::ApplyRowsOp,
                   ir::FusedWeightsGradientOp, ir::CombineWeightsGradientOp>(
      op);
}

/// Ops of a single device.
inline bool isPartitioned(mlir::Operation *op) {
  return mlir::isa<ir::ExchangeOp, ir::DeviceProgramOp, ir::LocalTableOp,
                   ir::LocalLookupOp, ir::RouteOp, ir::RunLookupOp,
                   ir::ExchangeResultsOp, ir::ExchangeJoinedResultsOp,
                   ir::ExchangeGradientsOp, ir::RunWeightsGradientOp,
                   ir::RunUpdateOp, ir::ReleaseOp>(op);
}

/// Emits an error on the first op for which `isOther` holds; `hint` ends it.
template <typename IsOther>
mlir::LogicalResult verifyLevel(mlir::ModuleOp module, llvm::StringRef level,
                                IsOther isOther, llvm::StringRef hint = "") {
  mlir::WalkResult result = module.walk([&](mlir::Operation *op) {
    if (!isOther(op))
      return mlir::WalkResult::advance();
    op->emitOpError("does not belong in a module of the ")
        << level << " level" << hint;
    return mlir::WalkResult::interrupt();
  });
  return mlir::failure(result.wasInterrupted());
}

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_LEVELS_H
