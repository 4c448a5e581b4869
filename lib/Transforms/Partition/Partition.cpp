//===- Partition.cpp - Make the functions SPMD ----------------------------===//

#include "BatchReductions.h"
#include "Partitioner.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

namespace neuroshard {
#define GEN_PASS_DEF_PARTITION
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

LogicalResult Partitioner::collectCallers(func::FuncOp callee) {
  auto uses = SymbolTable::getSymbolUses(callee, callee->getParentOp());
  if (!uses)
    return callee.emitError("'@") << printable(callee.getSymName())
                                  << "' is in a module with unknown uses";
  for (SymbolTable::SymbolUse use : *uses) {
    auto call = dyn_cast<func::CallOp>(use.getUser());
    auto caller = use.getUser()->getParentOfType<func::FuncOp>();
    if (!call || !caller)
      return use.getUser()->emitError("'@")
             << printable(callee.getSymName())
             << "' gets a device argument, so its only uses may be calls in "
                "functions";
    callers.insert(caller);
  }
  return success();
}

/// Refuses results with a fixed number of samples: on several devices a
/// function sees a part of the batch.
LogicalResult Partitioner::checkBatch(int64_t numDevices) {
  if (numDevices == 1)
    return success();
  SmallVector<func::FuncOp> functions = {step.wait};
  llvm::append_range(functions, callers);
  for (func::FuncOp function : functions)
    for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      bool scalar = type.isIntOrIndexOrFloat() || (tensor && !tensor.getRank());
      if (!scalar && (!tensor || tensor.isDynamicDim(0)))
        continue;
      return function.emitError("result #")
             << index << " of '@" << printable(function.getSymName())
             << "' has type " << type
             << (scalar ? ", which has no dimension for the samples"
                        : ", with a static number of samples")
             << "; each of " << numDevices
             << " devices computes its part of the batch, so results must "
                "have a dynamic first dimension";
    }
  return success();
}

LogicalResult Partitioner::checkReductions(int64_t numDevices) {
  if (numDevices == 1)
    return success();
  SmallVector<Value> pooled;
  for (func::CallOp call : callsOf(step.wait))
    for (const Exchange &exchange : exchanges)
      for (auto [lookup, position] :
           llvm::zip(exchange.lookups, exchange.positions))
        if (cast<LookupAttr>(lookup).getPooling() != Pooling::None)
          pooled.push_back(call.getResult(position));
  Operation *reduction = findBatchReduction(pooled);
  if (!reduction)
    return success();
  return emitError(reduction->getLoc())
         << "'" << reduction->getName()
         << "' op reduces over the samples of a lookup's result: each of "
         << numDevices
         << " devices would reduce over its part of the batch; compute it "
            "outside, where the whole batch is, or allow it with the option "
            "'local-reductions' if that is what is meant";
}

LogicalResult Partitioner::collect(int64_t numDevices) {
  if (failed(collectInputs()) || failed(collectLookups()))
    return failure();
  if (step.isTraining() && failed(collectUpdate()))
    return failure();
  if (failed(collectCallers(step.start)) || failed(collectCallers(step.wait)))
    return failure();
  SmallVector<func::FuncOp> direct(callers.getArrayRef());
  for (func::FuncOp caller : direct) {
    auto uses = SymbolTable::getSymbolUses(caller, caller->getParentOp());
    if (!uses || uses->empty())
      continue;
    return uses->begin()->getUser()->emitError("calls '@")
           << printable(caller.getSymName())
           << "', which gets a device argument; inline the call first";
  }
  return checkBatch(numDevices);
}

namespace {

struct Partition : neuroshard::impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;

  void runOnOperation() override {
    FailureOr<StepFunctions> step = StepFunctions::find(getOperation());
    if (failed(step))
      return signalPassFailure();
    FailureOr<PlanOp> plan = step->getPlan();
    if (failed(plan))
      return signalPassFailure();
    FailureOr<PlacedTables> placement = PlacedTables::of(*plan);
    if (failed(placement))
      return signalPassFailure();
    int64_t numDevices = placement->topology.getNumDevices();
    Partitioner partitioner(*step);
    if (failed(partitioner.collect(numDevices)) ||
        (!localReductions && failed(partitioner.checkReductions(numDevices))))
      return signalPassFailure();

    // From here on the exchanges name the plan.
    step->start->removeAttr(NeuroShardDialect::kPlanAttrName);
    partitioner.createExchanges(*plan);
    auto [programs, slots] = createDevicePrograms(
        *placement, partitioner.getExchanges(), step->isTraining());
    partitioner.partitionStart();
    partitioner.addLookup();
    partitioner.partitionWait();
    partitioner.addJoinedWait();
    if (step->isTraining())
      partitioner.partitionUpdate();
    partitioner.partitionCallers();
    numPrograms += programs;
    numSlots += slots;
    remark::analysis(plan->getLoc(), remark::RemarkOpts::name("Partitioned")
                                         .category("neuroshard-partition"))
        << remark::add("{0} distinct programs for {1} devices with {2} slots",
                       programs, numDevices, slots);
  }
};

} // namespace
