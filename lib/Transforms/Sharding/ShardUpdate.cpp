//===- ShardUpdate.cpp - Rewrite the update on distributed values ---------===//

#include "Bundles.h"
#include "Sharder.h"

#include "llvm/ADT/DenseSet.h"

#include <algorithm>
#include <functional>

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

SmallVector<ShardedLookup *> Sharder::lookupsOf(ValueRange gradients) {
  return llvm::map_to_vector(gradients, [&](Value gradient) {
    return &lookups[cast<BlockArgument>(gradient).getArgNumber() - 1];
  });
}

/// The update function must be as neuroshard-differentiate makes it.
LogicalResult Sharder::collectUpdate() {
  llvm::DenseSet<Value> arguments(llvm::from_range, step.getGradients());
  for (Operation &op : step.update.getBody().front().without_terminator()) {
    if (&op == step.restore)
      continue;
    auto update = dyn_cast<UpdateOp>(op);
    auto weightsGradient = dyn_cast<WeightsGradientOp>(op);
    if (!update && !weightsGradient)
      return op.emitOpError("is not allowed in '@")
             << kUpdateName << "' before neuroshard-shard";
    ValueRange gradients =
        update ? update.getGradients() : weightsGradient.getGradients();
    for (Value gradient : gradients)
      if (!arguments.contains(gradient))
        return op.emitOpError("gradients must be arguments of '@")
               << kUpdateName << "'";
    for (ShardedLookup *lookup : lookupsOf(gradients))
      (update ? lookup->inUpdate : lookup->inWeightsGradient) = true;
    if (update)
      updates.push_back(update);
    else
      weightsGradients.push_back(weightsGradient);
  }
  return success();
}

/// Distributes gradients to owners and replicas, and ids to replicas. The
/// update of a replicated table needs them at the replicas, the gradient of its
/// sample weights at the batch.
void Sharder::distributeGradients(OpBuilder &builder, ValueRange carried) {
  for (auto [lookup, gradient] : llvm::zip(lookups, step.getGradients()))
    if (lookup.inUpdate || lookup.inWeightsGradient)
      lookup.batchGradient = ScatterBatchOp::create(
          builder, lookup.loc, dist(gradient.getType(), Distribution::Batch),
          gradient);
  for (ShardedLookup &lookup : lookups) {
    if (!lookup.replicated() || !lookup.inUpdate)
      continue;
    Value ids = carried[lookup.input];
    Type idsType = cast<DistType>(ids.getType()).getType();
    lookup.replicaIds = DistributeIdsOp::create(
        builder, lookup.loc, dist(idsType, Distribution::Replica), ids,
        one(lookup.lookup));
  }
  for (ShardedLookup &lookup : lookups) {
    bool atOwner = !lookup.replicated() && lookup.batchGradient;
    if (!atOwner && !lookup.replicaIds)
      continue;
    Type type = dist(f32Rows(lookup.resultType),
                     atOwner ? Distribution::Owner : Distribution::Replica);
    lookup.gradient =
        DistributeGradientsOp::create(builder, lookup.loc, TypeRange(type),
                                      carried[lookup.input],
                                      lookup.batchGradient, one(lookup.lookup))
            .getResults()
            .front();
  }
}

/// Computes partial gradients of the weights on the devices with the rows, and
/// adds them on the devices with the samples.
Value Sharder::shardWeightsGradient(OpBuilder &builder, WeightsGradientOp op,
                                    ValueRange carried) {
  Type weights = op.getResult().getType();
  SmallVector<Value> partials;
  unsigned input = 0;
  for (ShardedLookup *lookup : lookupsOf(op.getGradients())) {
    bool owner = !lookup->replicated();
    input = lookup->input;
    partials.push_back(FusedWeightsGradientOp::create(
        builder, lookup->loc,
        dist(weights, owner ? Distribution::Owner : Distribution::Batch),
        carried[owner ? lookup->ownerIds : input],
        owner ? lookup->gradient : lookup->batchGradient, one(lookup->lookup)));
  }
  Value combined = CombineWeightsGradientOp::create(
      builder, op.getLoc(), dist(weights, Distribution::Batch), carried[input],
      partials, op.getLookups());
  return GatherBatchOp::create(builder, op.getLoc(), weights, combined);
}

/// Updates first the tables whose devices exchange nothing for it.
void Sharder::shardTableUpdates(OpBuilder &builder, ValueRange carried) {
  auto placed = [&](UpdateOp op) -> const TablePlacement & {
    return placement[op.getTableAttr().getAttr()];
  };
  auto isInPhases = [&](UpdateOp op) {
    return placed(op).twoPhase || placed(op).copied;
  };
  std::stable_partition(updates.begin(), updates.end(),
                        std::not_fn(isInPhases));
  SmallVector<std::pair<UpdateOp, Value>> inPhases;
  for (UpdateOp op : updates) {
    SmallVector<Value> ids, gradients;
    for (ShardedLookup *lookup : lookupsOf(op.getGradients())) {
      ids.push_back(lookup->replicated() ? lookup->replicaIds
                                         : carried[lookup->ownerIds]);
      gradients.push_back(lookup->gradient);
    }
    if (isInPhases(op)) {
      Type rows = dist(RowsType::get(context), Distribution::Owner);
      inPhases.emplace_back(op, ReduceRowsOp::create(builder, op.getLoc(), rows,
                                                     ids, gradients,
                                                     op.getLookups()));
      continue;
    }
    FusedUpdateOp::create(builder, op.getLoc(), ids, gradients, op.getLookups(),
                          op.getLearningRate(), op.getStep());
  }
  for (auto &[op, rows] : inPhases)
    if (placed(op).copied)
      rows = ExchangeCopiesOp::create(builder, op.getLoc(), rows.getType(),
                                      rows, one(op.getTableAttr()));
  for (auto &[op, rows] : inPhases)
    if (placed(op).twoPhase)
      rows = ExchangeNormsOp::create(builder, op.getLoc(), rows.getType(), rows,
                                     one(op.getTableAttr()));
  for (auto &[op, rows] : inPhases)
    ApplyRowsOp::create(builder, op.getLoc(), rows, one(op.getTableAttr()),
                        op.getLearningRate(), op.getStep());
}

void Sharder::shardUpdate() {
  auto restore = recreateUnbundle(step.restore);
  ValueRange carried = restore.getValues();
  OpBuilder builder(step.update.getBody().front().getTerminator());
  distributeGradients(builder, carried);
  for (WeightsGradientOp op : weightsGradients) {
    op.getResult().replaceAllUsesWith(
        shardWeightsGradient(builder, op, carried));
    op.erase();
  }
  shardTableUpdates(builder, carried);
  for (UpdateOp op : updates)
    op.erase();
  step.restore.erase();
  step.restore = restore;
}
