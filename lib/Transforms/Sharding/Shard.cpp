//===- Shard.cpp - Rewrite start and wait on distributed values -----------===//

#include "Bundles.h"
#include "Sharder.h"
#include "neuroshard/Dialect/CheckedOptions.h"
#include "neuroshard/Transforms/FindPlan.h"
#include "neuroshard/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

namespace neuroshard {
#define GEN_PASS_DEF_SHARD
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

Sharder::Sharder(StepFunctions &step, const PlacedTables &placement)
    : step(step), placement(placement), context(step.start.getContext()) {}

DistType Sharder::dist(Type type, Distribution distribution) const {
  return DistType::get(context, type, distribution);
}

RankedTensorType Sharder::f32Rows(RankedTensorType type) const {
  return RankedTensorType::get(type.getShape(), Float32Type::get(context));
}

ArrayAttr Sharder::one(Attribute attribute) const {
  return ArrayAttr::get(context, attribute);
}

unsigned Sharder::getNumLookups(bool replicated) const {
  return llvm::count_if(lookups, [&](const ShardedLookup &lookup) {
    return lookup.replicated() == replicated;
  });
}

LogicalResult Sharder::collect() {
  for (Value result : step.getLookupResults()) {
    auto lookup = result.getDefiningOp<LookupOp>();
    if (!lookup || lookup.getIds().getDefiningOp() != step.resume)
      return step.wait.emitError("results of '@")
             << kWaitName
             << "' must be lookups of its ids; neuroshard-shard runs once, "
                "after neuroshard-outline";
    lookups.push_back(
        {lookup.getLookup(), cast<RankedTensorType>(result.getType()),
         lookup.getLoc(), cast<OpResult>(lookup.getIds()).getResultNumber(),
         &placement[lookup.getLookup()]});
  }
  return step.isTraining() ? collectUpdate() : success();
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

void Sharder::shardStart() {
  step.start->setAttr(
      NeuroShardDialect::kPlanAttrName,
      FlatSymbolRefAttr::get(PlanOp(placement.plan).getSymNameAttr()));
  OpBuilder builder(step.suspend);
  SmallVector<Value> carried;
  for (Value ids : step.suspend.getValues())
    carried.push_back(
        ScatterBatchOp::create(builder, step.start.getLoc(),
                               dist(ids.getType(), Distribution::Batch), ids));
  for (ShardedLookup &lookup : lookups) {
    if (lookup.replicated())
      continue;
    Value batchIds = carried[lookup.input];
    Type idsType = cast<DistType>(batchIds.getType()).getType();
    lookup.ownerIds = carried.size();
    carried.push_back(DistributeIdsOp::create(
        builder, lookup.loc, dist(idsType, Distribution::Owner), batchIds,
        one(lookup.lookup)));
  }
  rebundle(step.suspend, carried);
}

/// Lets wait return `rows` instead of the results of its lookups.
static void replaceLookups(StepFunctions &step, ArrayRef<Value> rows) {
  Operation *terminator = step.wait.getBody().front().getTerminator();
  SmallVector<Value> old(step.getLookupResults());
  for (auto [index, row] : llvm::enumerate(rows))
    terminator->setOperand(index, row);
  // A lookup may be returned twice.
  for (Value result : old)
    if (Operation *lookup = result.getDefiningOp(); lookup->use_empty())
      lookup->erase();
}

void Sharder::shardWait() {
  auto resume = recreateUnbundle(step.resume);
  ValueRange carried = resume.getValues();
  OpBuilder builder(step.wait.getBody().front().getTerminator());
  if (step.save)
    builder.setInsertionPoint(step.save);

  SmallVector<Value> rows;
  for (ShardedLookup &lookup : lookups) {
    bool owner = !lookup.replicated();
    Type type = owner ? dist(f32Rows(lookup.resultType), Distribution::Owner)
                      : dist(lookup.resultType, Distribution::Batch);
    Value ids = carried[owner ? lookup.ownerIds : lookup.input];
    rows.push_back(FusedLookupOp::create(builder, lookup.loc, type, ids,
                                         one(lookup.lookup))
                       .getPartials()
                       .front());
  }
  for (auto [lookup, row] : llvm::zip(lookups, rows))
    if (!lookup.replicated())
      row = CombineOp::create(
                builder, lookup.loc,
                TypeRange(dist(lookup.resultType, Distribution::Batch)),
                carried[lookup.input], row, one(lookup.lookup))
                .getResults()
                .front();
  for (auto [lookup, row] : llvm::zip(lookups, rows))
    row = GatherBatchOp::create(builder, lookup.loc, lookup.resultType, row);
  replaceLookups(step, rows);
  if (step.save)
    rebundle(step.save, carried);
  step.resume.erase();
  step.resume = resume;
}

/// Compiled plans are for the native target.
static LogicalResult verifyTiers(PlanOp plan) {
  for (auto shard : plan.getOps<ShardOp>())
    if (hasRowCache(Target::Native, shard.getTier()) &&
        shard.getCacheSpec().rows == 0)
      return shard.emitOpError()
             << "needs a cache for target native, which keeps rows of tier "
             << toString(shard.getTier()) << " behind one";
  return success();
}

namespace {

struct Shard : CheckedOptions<neuroshard::impl::ShardBase<Shard>> {
  using CheckedOptions::CheckedOptions;

  void runOnOperation() override {
    FailureOr<PlanOp> planOp = requirePlan(getOperation(), plan);
    if (failed(planOp) || failed(verifyTiers(*planOp)))
      return signalPassFailure();
    FailureOr<StepFunctions> step = StepFunctions::find(getOperation());
    FailureOr<PlacedTables> placement = PlacedTables::of(*planOp);
    if (failed(step) || failed(placement))
      return signalPassFailure();
    Sharder sharder(*step, *placement);
    if (failed(sharder.collect()))
      return signalPassFailure();
    sharder.shardStart();
    sharder.shardWait();
    if (step->isTraining())
      sharder.shardUpdate();
    numSharded += sharder.getNumLookups(/*replicated=*/false);
    numReplicated += sharder.getNumLookups(/*replicated=*/true);
    remark::analysis(
        step->start.getLoc(),
        remark::RemarkOpts::name("Sharded").category("neuroshard-shard"))
        << remark::add("{0} lookups at the owners of their rows, {1} of "
                       "replicated tables at the batch",
                       sharder.getNumLookups(false),
                       sharder.getNumLookups(true));
  }
};

} // namespace
