//===- Fuse.cpp - Merge lookups and tables into few ops -------------------===//

#include "Bundles.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/StepFunctions.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace neuroshard {
#define GEN_PASS_DEF_FUSE
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

namespace {

/// What ops must have in common to be merged.
using Key = std::pair<Value, int>;

int number(Distribution distribution) { return static_cast<int>(distribution); }

Distribution distributionOf(Value value) {
  return cast<DistType>(value.getType()).getDistribution();
}

Key keyOf(DistributeIdsOp op) {
  return {op.getIds(), number(distributionOf(op.getResult()))};
}
Key keyOf(FusedLookupOp op) { return {op.getIds(), 0}; }
Key keyOf(CombineOp op) { return {op.getIds(), 0}; }
Key keyOf(DistributeGradientsOp op) {
  return {op.getIds(), number(distributionOf(op.getResults().front()))};
}
Key keyOf(FusedWeightsGradientOp op) { return {op.getIds(), 0}; }
Key keyOf(FusedUpdateOp op) {
  return {Value(), number(distributionOf(op.getIds().front()))};
}
/// Tables that exchange the same in their update stay together.
Key keyOf(ReduceRowsOp op) {
  int exchanges = 0;
  Value rows = op.getRows();
  while (rows.hasOneUse()) {
    Operation *user = *rows.user_begin();
    if (isa<ExchangeCopiesOp>(user))
      exchanges |= 1;
    else if (isa<ExchangeNormsOp>(user))
      exchanges |= 2;
    else
      break;
    rows = user->getResult(0);
  }
  return {Value(), exchanges};
}
Key keyOf(ExchangeCopiesOp op) { return {op.getRows(), 0}; }
Key keyOf(ExchangeNormsOp op) { return {op.getRows(), 0}; }
Key keyOf(ApplyRowsOp op) { return {op.getRows(), 0}; }

template <typename OpT> using Group = SmallVector<OpT>;

template <typename OpT> ArrayAttr allLookups(const Group<OpT> &group) {
  SmallVector<Attribute> lookups;
  for (OpT op : group)
    llvm::append_range(lookups, op.getLookups());
  return ArrayAttr::get(group.front()->getContext(), lookups);
}

template <typename OpT> ArrayAttr allTables(const Group<OpT> &group) {
  SmallVector<Attribute> tables;
  for (OpT op : group)
    llvm::append_range(tables, op.getTables());
  return ArrayAttr::get(group.front()->getContext(), tables);
}

template <typename OpT, typename RangeOf>
SmallVector<Value> all(const Group<OpT> &group, RangeOf rangeOf) {
  SmallVector<Value> values;
  for (OpT op : group)
    llvm::append_range(values, rangeOf(op));
  return values;
}

template <typename OpT> SmallVector<Type> allTypes(const Group<OpT> &group) {
  SmallVector<Type> types;
  for (OpT op : group)
    llvm::append_range(types, op->getResultTypes());
  return types;
}

auto idsOf = [](auto op) { return op.getIds(); };
auto partialsOf = [](auto op) { return op.getPartials(); };
auto gradientsOf = [](auto op) { return op.getGradients(); };

// Each creates one op for a whole group. It has the results of the group in
// their order, or one result that replaces all of them.

Operation *merge(OpBuilder &builder, const Group<DistributeIdsOp> &group) {
  DistributeIdsOp first = group.front();
  return DistributeIdsOp::create(builder, first.getLoc(), first.getType(),
                                 first.getIds(), allLookups(group));
}
Operation *merge(OpBuilder &builder, const Group<FusedLookupOp> &group) {
  FusedLookupOp first = group.front();
  return FusedLookupOp::create(builder, first.getLoc(), allTypes(group),
                               first.getIds(), allLookups(group));
}
Operation *merge(OpBuilder &builder, const Group<CombineOp> &group) {
  CombineOp first = group.front();
  return CombineOp::create(builder, first.getLoc(), allTypes(group),
                           first.getIds(), all(group, partialsOf),
                           allLookups(group));
}
Operation *merge(OpBuilder &builder,
                 const Group<DistributeGradientsOp> &group) {
  DistributeGradientsOp first = group.front();
  return DistributeGradientsOp::create(builder, first.getLoc(), allTypes(group),
                                       first.getIds(), all(group, gradientsOf),
                                       allLookups(group));
}
Operation *merge(OpBuilder &builder,
                 const Group<FusedWeightsGradientOp> &group) {
  FusedWeightsGradientOp first = group.front();
  return FusedWeightsGradientOp::create(
      builder, first.getLoc(), first.getType(), first.getIds(),
      all(group, gradientsOf), allLookups(group));
}
Operation *merge(OpBuilder &builder, const Group<FusedUpdateOp> &group) {
  FusedUpdateOp first = group.front();
  return FusedUpdateOp::create(builder, first.getLoc(), all(group, idsOf),
                               all(group, gradientsOf), allLookups(group),
                               first.getLearningRate(), first.getStep());
}
Operation *merge(OpBuilder &builder, const Group<ReduceRowsOp> &group) {
  ReduceRowsOp first = group.front();
  return ReduceRowsOp::create(builder, first.getLoc(), first.getType(),
                              all(group, idsOf), all(group, gradientsOf),
                              allLookups(group));
}
template <typename OpT>
Operation *mergeExchanges(OpBuilder &builder, const Group<OpT> &group) {
  OpT first = group.front();
  return OpT::create(builder, first.getLoc(), first.getType(), first.getRows(),
                     allTables(group));
}
Operation *merge(OpBuilder &builder, const Group<ExchangeCopiesOp> &group) {
  return mergeExchanges(builder, group);
}
Operation *merge(OpBuilder &builder, const Group<ExchangeNormsOp> &group) {
  return mergeExchanges(builder, group);
}
Operation *merge(OpBuilder &builder, const Group<ApplyRowsOp> &group) {
  ApplyRowsOp first = group.front();
  return ApplyRowsOp::create(builder, first.getLoc(), first.getRows(),
                             allTables(group), first.getLearningRate(),
                             first.getStep());
}

/// The merged op replaces the last one, where all operands are defined. So all
/// users of the others must come later.
template <typename OpT> bool canMoveToLast(const Group<OpT> &group) {
  Operation *last = group.back();
  return llvm::all_of(group, [&](OpT op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      Operation *ancestor = last->getBlock()->findAncestorOpInBlock(*user);
      return ancestor && last->isBeforeInBlock(ancestor);
    });
  });
}

struct Fuse : neuroshard::impl::FuseBase<Fuse> {
  using FuseBase::FuseBase;

  void runOnOperation() override;
  template <typename OpT> void mergeAll(func::FuncOp function);
  template <typename OpT> SmallVector<unsigned> dropDuplicates(OpT bundling);
  template <typename OpT>
  void replaceUnbundle(OpT &op, ArrayRef<unsigned> positions);
  void fuseUpdate(StepFunctions &step);

  /// The same as the statistic, which counts only where LLVM does.
  size_t merged = 0;
};

template <typename OpT> void Fuse::mergeAll(func::FuncOp function) {
  llvm::MapVector<Key, Group<OpT>> groups;
  for (auto op : function.getOps<OpT>())
    groups[keyOf(op)].push_back(op);
  for (auto &[key, group] : groups) {
    if (group.size() < 2 || !canMoveToLast(group))
      continue;
    OpBuilder builder(group.back());
    Operation *all = merge(builder, group);
    bool shared =
        all->getNumResults() < group.size() * group.front()->getNumResults();
    unsigned position = 0;
    for (OpT op : group)
      for (Value result : op->getResults())
        result.replaceAllUsesWith(all->getResult(shared ? 0 : position++));
    numMerged += group.size() - 1;
    merged += group.size() - 1;
    for (OpT op : group)
      op.erase();
  }
}

/// Bundles each value once. Returns the new position of each old value.
template <typename OpT>
SmallVector<unsigned> Fuse::dropDuplicates(OpT bundling) {
  llvm::MapVector<Value, unsigned> positionOf;
  SmallVector<unsigned> positions;
  for (Value value : bundling.getValues())
    positions.push_back(
        positionOf.try_emplace(value, positionOf.size()).first->second);
  SmallVector<Value> values;
  for (auto &[value, position] : positionOf)
    values.push_back(value);
  rebundle(bundling, values);
  return positions;
}

template <typename OpT>
void Fuse::replaceUnbundle(OpT &op, ArrayRef<unsigned> positions) {
  OpT replacement = recreateUnbundle(op);
  for (auto [result, position] : llvm::zip(op.getValues(), positions))
    result.replaceAllUsesWith(replacement.getValues()[position]);
  op.erase();
  op = replacement;
}

void Fuse::fuseUpdate(StepFunctions &step) {
  replaceUnbundle(step.restore, dropDuplicates(step.save));
  mergeAll<DistributeIdsOp>(step.update);
  mergeAll<DistributeGradientsOp>(step.update);
  mergeAll<FusedWeightsGradientOp>(step.update);
  for (auto combine : step.update.getOps<CombineWeightsGradientOp>()) {
    llvm::SetVector<Value> partials(llvm::from_range, combine.getPartials());
    combine.getPartialsMutable().assign(partials.getArrayRef());
  }
  mergeAll<FusedUpdateOp>(step.update);
  mergeAll<ReduceRowsOp>(step.update);
  mergeAll<ExchangeCopiesOp>(step.update);
  mergeAll<ExchangeNormsOp>(step.update);
  mergeAll<ApplyRowsOp>(step.update);
}

void Fuse::runOnOperation() {
  FailureOr<StepFunctions> step = StepFunctions::find(getOperation());
  if (failed(step))
    return signalPassFailure();
  merged = 0;
  mergeAll<DistributeIdsOp>(step->start);
  replaceUnbundle(step->resume, dropDuplicates(step->suspend));
  mergeAll<FusedLookupOp>(step->wait);
  mergeAll<CombineOp>(step->wait);
  if (step->isTraining())
    fuseUpdate(*step);
  remark::passed(step->start.getLoc(),
                 remark::RemarkOpts::name("Fused").category("neuroshard-fuse"))
      << remark::add("{0} ops merged into others", merged);
}

} // namespace
