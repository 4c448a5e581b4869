//===- Sharder.h - Step functions on distributed values --------*- C++ -*-===//
//
// The rewriting of the pass neuroshard-shard.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_SHARDING_SHARDER_H
#define NEUROSHARD_LIB_TRANSFORMS_SHARDING_SHARDER_H

#include "Planning/PlacedTables.h"
#include "neuroshard/Transforms/StepFunctions.h"

namespace neuroshard {

/// One lookup of the step, at the sharded level.
struct ShardedLookup {
  ir::LookupAttr lookup;
  mlir::RankedTensorType resultType;
  mlir::Location loc;
  /// Index of the jagged input it reads.
  unsigned input;
  const TablePlacement *placement;
  /// Position, among the values that start returns, of its ids at their owners;
  /// unused for a replicated table.
  unsigned ownerIds = 0;

  /// Which ops of the update read its gradient.
  bool inUpdate = false, inWeightsGradient = false;
  /// Its gradient on the devices with the samples, and on those with the rows.
  mlir::Value batchGradient = {}, gradient = {};
  /// Its ids at the replicas.
  mlir::Value replicaIds = {};

  bool replicated() const { return placement->replicated; }
};

/// Rewrites the three step functions. Every op does one lookup or one table;
/// neuroshard-fuse merges them. In each function, ops of one kind follow
/// one another.
class Sharder {
public:
  Sharder(StepFunctions &step, const PlacedTables &placement);

  /// Finds the lookups and checks the functions' form; changes nothing.
  mlir::LogicalResult collect();
  void shardStart();
  void shardWait();
  void shardUpdate();
  unsigned getNumLookups(bool replicated) const;

private:
  ir::DistType dist(mlir::Type type, ir::Distribution distribution) const;
  /// Rows travel as f32, so that partial sums are rounded once.
  mlir::RankedTensorType f32Rows(mlir::RankedTensorType type) const;
  mlir::ArrayAttr one(mlir::Attribute attribute) const;

  mlir::LogicalResult collectUpdate();
  void distributeGradients(mlir::OpBuilder &builder, mlir::ValueRange carried);
  mlir::Value shardWeightsGradient(mlir::OpBuilder &builder,
                                   ir::WeightsGradientOp op,
                                   mlir::ValueRange carried);
  void shardTableUpdates(mlir::OpBuilder &builder, mlir::ValueRange carried);
  /// The lookups that the gradients of an update op belong to.
  llvm::SmallVector<ShardedLookup *> lookupsOf(mlir::ValueRange gradients);

  StepFunctions &step;
  const PlacedTables &placement;
  mlir::MLIRContext *context;
  llvm::SmallVector<ShardedLookup> lookups;
  llvm::SmallVector<ir::WeightsGradientOp> weightsGradients;
  llvm::SmallVector<ir::UpdateOp> updates;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_SHARDING_SHARDER_H
