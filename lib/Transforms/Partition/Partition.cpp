//===- Partition.cpp - Make the functions SPMD ----------------------------===//

#include "Partitioner.h"
#include "neuroshard/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

namespace neuroshard {
#define GEN_PASS_DEF_PARTITION
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

namespace {

/// The plan that the sharded functions are written for.
FailureOr<PlanOp> findPlanOfStep(StepFunctions &step) {
  for (Value carried : step.suspend.getValues())
    if (auto dist = dyn_cast<DistType>(carried.getType()))
      return step.start->getParentOfType<ModuleOp>().lookupSymbol<PlanOp>(
          dist.getPlan().getAttr());
  return step.start.emitError("'@")
         << kStartName
         << "' has no distributed values; run neuroshard-shard first";
}

struct Partition : neuroshard::impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;

  void runOnOperation() override {
    FailureOr<StepFunctions> step = StepFunctions::find(getOperation());
    if (failed(step))
      return signalPassFailure();
    FailureOr<PlanOp> plan = findPlanOfStep(*step);
    if (failed(plan))
      return signalPassFailure();
    FailureOr<PlacedTables> placement = PlacedTables::of(*plan);
    if (failed(placement))
      return signalPassFailure();
    int64_t numDevices = placement->topology.getNumDevices();
    Partitioner partitioner(*step);
    if (failed(partitioner.collect(numDevices)))
      return signalPassFailure();

    partitioner.createExchanges(*plan);
    auto [programs, slots] = createDevicePrograms(
        *placement, partitioner.getExchanges(), step->isTraining());
    partitioner.partitionStart();
    partitioner.partitionWait();
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
