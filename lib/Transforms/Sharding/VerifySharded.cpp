//===- VerifySharded.cpp - Invariants of the sharded level ----------------===//

#include "Levels.h"
#include "Planning/PlacedTables.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/StepFunctions.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace neuroshard {
#define GEN_PASS_DEF_VERIFYSHARDED
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

namespace {

/// A lookup and the jagged input it reads.
using Use = std::pair<Attribute, unsigned>;

/// The ops of one kind with each use.
using Uses = llvm::MapVector<Use, SmallVector<Operation *>>;

std::string describe(const Use &use) {
  std::string text;
  llvm::raw_string_ostream(text) << use.first << " on ids #" << use.second;
  return text;
}

class ShardedVerifier {
public:
  ShardedVerifier(StepFunctions &step, const PlacedTables &placement)
      : step(step), placement(placement) {}

  LogicalResult verifyForward();
  LogicalResult verifyUpdate();

private:
  LogicalResult add(Uses &uses, Operation *op, Value ids, Attribute lookup);
  template <typename OpT> FailureOr<Uses> usesOf(func::FuncOp function);
  LogicalResult verifyPlace(FusedLookupOp op);
  LogicalResult verifySame(const Uses &from, const Uses &to,
                           llvm::StringRef rule);
  LogicalResult verifyPhases();
  LogicalResult verifyUpdatePlace(Operation *op, LookupAttr lookup,
                                  Distribution distribution);

  StepFunctions &step;
  const PlacedTables &placement;
};

LogicalResult ShardedVerifier::add(Uses &uses, Operation *op, Value ids,
                                   Attribute lookup) {
  std::optional<unsigned> input = step.getInput(ids);
  if (!input)
    return op->emitOpError("ids must come from an argument of '@")
           << kStartName << "'";
  uses[{lookup, *input}].push_back(op);
  return success();
}

template <typename OpT>
FailureOr<Uses> ShardedVerifier::usesOf(func::FuncOp function) {
  Uses uses;
  for (auto op : function.getOps<OpT>())
    for (Attribute lookup : op.getLookups())
      if (failed(add(uses, op, op.getIds(), lookup)))
        return failure();
  return uses;
}

LogicalResult ShardedVerifier::verifyPlace(FusedLookupOp op) {
  bool atBatch = op.getIds().getType().getDistribution() == Distribution::Batch;
  for (auto lookup : op.getLookups().getAsRange<LookupAttr>()) {
    const TablePlacement &table = placement[lookup];
    if (table.replicated == atBatch)
      continue;
    InFlightDiagnostic diagnostic =
        op.emitOpError("looks up the ")
        << (table.replicated ? "replicated" : "sharded") << " table '@"
        << printable(lookup.getTable().getValue()) << "' at the "
        << (atBatch ? "batch; its rows are at their owners"
                    : "owners; its rows are on every device");
    diagnostic.attachNote(ShardOp(table.shards.front()).getLoc())
        << "the plan places it here";
    return diagnostic;
  }
  return success();
}

/// Checks that every use in `from` is in `to` as often.
LogicalResult ShardedVerifier::verifySame(const Uses &from, const Uses &to,
                                          llvm::StringRef rule) {
  for (auto &[use, ops] : from) {
    auto *other = to.find(use);
    size_t count = other == to.end() ? 0 : other->second.size();
    if (count == ops.size())
      continue;
    InFlightDiagnostic diagnostic = ops.front()->emitOpError(rule)
                                    << " exactly once; " << describe(use)
                                    << " is there " << count << " times";
    if (count)
      diagnostic.attachNote(other->second.front()->getLoc())
          << "one of them is here";
    return diagnostic;
  }
  return success();
}

LogicalResult ShardedVerifier::verifyForward() {
  Uses lookups;
  for (auto op : step.wait.getOps<FusedLookupOp>()) {
    if (failed(verifyPlace(op)))
      return failure();
    if (op.getIds().getType().getDistribution() == Distribution::Batch)
      continue;
    for (Attribute lookup : op.getLookups())
      if (failed(add(lookups, op, op.getIds(), lookup)))
        return failure();
  }
  FailureOr<Uses> distributed = usesOf<DistributeIdsOp>(step.start);
  FailureOr<Uses> combined = usesOf<CombineOp>(step.wait);
  if (failed(distributed) || failed(combined))
    return failure();
  if (failed(verifySame(lookups, *distributed,
                        "needs the ids of its lookups distributed")) ||
      failed(verifySame(*distributed, lookups,
                        "needs its ids looked up at the owners")) ||
      failed(verifySame(lookups, *combined, "needs its rows combined")) ||
      failed(verifySame(*combined, lookups,
                        "needs the rows of its lookups looked up")))
    return failure();
  return success();
}

LogicalResult ShardedVerifier::verifyUpdatePlace(Operation *op,
                                                 LookupAttr lookup,
                                                 Distribution distribution) {
  const TablePlacement &table = placement[lookup];
  StringAttr name = lookup.getTable().getAttr();
  if (!TableOp(table.table).getOptimizer())
    return op->emitOpError("updates table '")
           << printable(name.getValue()) << "', which has no optimizer";
  bool inPhases = table.twoPhase || table.copied;
  if (inPhases != isa<ReduceRowsOp>(op))
    return op->emitOpError()
           << (inPhases ? "updates table '" : "reduces rows of table '")
           << printable(name.getValue()) << "', which needs "
           << (!inPhases        ? "one phase only"
               : table.twoPhase ? "two phases: its row-wise optimizer is exact "
                                  "and its columns are split"
                                : "two phases: its shards have copies");
  if (table.replicated == (distribution == Distribution::Replica))
    return success();
  return op->emitOpError("updates the ")
         << (table.replicated ? "replicated" : "sharded") << " table '"
         << printable(name.getValue()) << "' at its "
         << stringifyDistribution(distribution) << "s";
}

/// Null of a null op.
template <typename OpT> Value resultOf(OpT op) {
  return op ? op.getResult() : Value();
}

/// The one user of rows, if it is of this kind and for these tables.
template <typename OpT> OpT userOf(Value rows, ArrayRef<Attribute> tables) {
  auto user = rows.hasOneUse() ? dyn_cast<OpT>(*rows.user_begin()) : OpT();
  return user && llvm::equal(user.getTables(), tables) ? user : OpT();
}

/// Tables go through all ops of their phases.
LogicalResult ShardedVerifier::verifyPhases() {
  for (auto reduce : step.update.getOps<ReduceRowsOp>()) {
    llvm::SetVector<Attribute> tables;
    for (auto lookup : reduce.getLookups().getAsRange<LookupAttr>())
      tables.insert(lookup.getTable());
    auto isSame = [&](bool TablePlacement::*phase) {
      return llvm::all_equal(llvm::map_range(tables, [&](Attribute table) {
        return placement[cast<FlatSymbolRefAttr>(table).getAttr()].*phase;
      }));
    };
    if (!isSame(&TablePlacement::copied) || !isSame(&TablePlacement::twoPhase))
      return reduce.emitOpError(
          "its tables need the same exchanges: of copies, "
          "of norms, or of both");
    const TablePlacement &table =
        placement[cast<FlatSymbolRefAttr>(tables.front()).getAttr()];
    Value rows = reduce.getRows();
    if (table.copied && rows)
      rows = resultOf(userOf<ExchangeCopiesOp>(rows, tables.getArrayRef()));
    if (table.twoPhase && rows)
      rows = resultOf(userOf<ExchangeNormsOp>(rows, tables.getArrayRef()));
    if (rows && userOf<ApplyRowsOp>(rows, tables.getArrayRef()))
      continue;
    return reduce.emitOpError("rows must go through ")
           << (table.copied ? "one 'exchange_copies' and " : "")
           << (table.twoPhase ? "one 'exchange_norms' and " : "")
           << "one 'apply_rows', with the same tables";
  }
  return success();
}

LogicalResult ShardedVerifier::verifyUpdate() {
  Uses updates, lookups;
  auto addUpdate = [&](auto op) -> LogicalResult {
    for (auto [lookup, ids] : llvm::zip(
             op.getLookups().template getAsRange<LookupAttr>(), op.getIds())) {
      auto type = cast<DistType>(ids.getType());
      if (failed(verifyUpdatePlace(op, lookup, type.getDistribution())) ||
          failed(add(updates, op, ids, lookup)))
        return failure();
    }
    return success();
  };
  for (auto op : step.update.getOps<FusedUpdateOp>())
    if (failed(addUpdate(op)))
      return failure();
  for (auto op : step.update.getOps<ReduceRowsOp>())
    if (failed(addUpdate(op)))
      return failure();
  for (auto op : step.wait.getOps<FusedLookupOp>())
    for (auto lookup : op.getLookups().getAsRange<LookupAttr>())
      if (TableOp(placement[lookup].table).getOptimizer())
        if (failed(add(lookups, op, op.getIds(), lookup)))
          return failure();
  if (failed(
          verifySame(lookups, updates, "needs its gradients in an update")) ||
      failed(verifySame(updates, lookups, "needs a lookup for its gradients")))
    return failure();
  return verifyPhases();
}

struct VerifySharded : neuroshard::impl::VerifyShardedBase<VerifySharded> {
  using VerifyShardedBase::VerifyShardedBase;

  LogicalResult verify() {
    if (failed(verifyLevel(getOperation(), "sharded", [](Operation *op) {
          return isLogicalStep(op) || isPartitioned(op);
        })))
      return failure();
    FailureOr<StepFunctions> step = StepFunctions::find(getOperation());
    if (failed(step))
      return failure();
    FailureOr<PlanOp> plan = step->getPlan();
    if (failed(plan))
      return failure();
    FailureOr<PlacedTables> placement = PlacedTables::of(*plan);
    if (failed(placement))
      return failure();
    ShardedVerifier verifier(*step, *placement);
    if (failed(verifier.verifyForward()))
      return failure();
    return step->isTraining() ? verifier.verifyUpdate() : success();
  }

  void runOnOperation() override {
    if (failed(verify()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
