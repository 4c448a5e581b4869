//===- Pipelines.cpp - The order of the passes ----------------------------===//

#include "neuroshard/Pipelines/Pipelines.h"

#include "neuroshard/Conversion/Native/Pipeline.h"
#include "neuroshard/Conversion/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace neuroshard;

PlanOptions PlanningOptions::toPlanOptions() const {
  PlanOptions options;
#define SEARCH_TEXT(ID, ...) options.ID = ID;
#define SEARCH_WHOLE(ID, ...) options.ID = ID;
#define SEARCH_NUMBER(ID, ...) options.ID = ID;
#include "neuroshard/Planner/SearchOptions.def"
#define PROBLEM_TEXT(ID, ...) options.ID = ID;
#define PROBLEM_COUNT(ID, ...) options.ID = ID;
#include "neuroshard/Transforms/ProblemOptions.def"
  return options;
}

TopologyFromGridOptions PlanningOptions::toGridOptions() const {
  TopologyFromGridOptions options;
  options.deviceClass = deviceClass;
  return options;
}

static void addOutline(OpPassManager &pm, llvm::StringRef entry,
                       bool training) {
  OutlineOptions outline;
  outline.entry = entry.str();
  pm.addPass(createOutline(outline));
  if (training)
    pm.addPass(createDifferentiate());
}

void neuroshard::buildToPlanned(OpPassManager &pm, const PlanOptions &options,
                                const TopologyFromGridOptions &grid) {
  // With both, neuroshard-plan checks that they give the same topology.
  if (options.topology.empty() || !grid.deviceClass.empty())
    pm.addPass(createTopologyFromGrid(grid));
  // Equal lookups have equal results: one is enough to plan and to exchange.
  pm.addPass(createCSEPass());
  pm.addPass(createPlan(options));
  pm.addPass(createVerifyPlanned());
}

void neuroshard::buildPlannedToSharded(OpPassManager &pm, llvm::StringRef entry,
                                       bool training) {
  addOutline(pm, entry, training);
  pm.addPass(createShard());
  pm.addPass(createFuse());
  pm.addPass(createVerifySharded());
}

void neuroshard::buildShardedToPartitioned(OpPassManager &pm) {
  pm.addPass(createPartition());
  pm.addPass(createVerifyPartitioned());
}

void neuroshard::buildReference(OpPassManager &pm,
                                const ReferenceOptions &options) {
  addOutline(pm, options.entry, options.training);
  pm.addPass(createLowerReference());
}

void neuroshard::buildPartitionedToNative(OpPassManager &pm,
                                          llvm::StringRef program) {
  ConvertToRuntimeOptions options;
  options.program = program.str();
  pm.addPass(createConvertToRuntime(options));
  buildNativePipeline(pm);
}

static void addKeepEntry(OpPassManager &pm, llvm::StringRef entry) {
  KeepEntryOptions options;
  options.entry = entry.str();
  pm.addPass(createKeepEntry(options));
}

static void buildToSharded(OpPassManager &pm, const StepOptions &options) {
  addKeepEntry(pm, options.entry);
  buildToPlanned(pm, options.toPlanOptions(), options.toGridOptions());
  buildPlannedToSharded(pm, options.entry, options.training);
}

void neuroshard::registerPipelines() {
  PassPipelineRegistration<PlanningOptions>(
      "neuroshard-to-planned", "From the logical to the planned level",
      [](OpPassManager &pm, const PlanningOptions &options) {
        buildToPlanned(pm, options.toPlanOptions(), options.toGridOptions());
      });
  PassPipelineRegistration<StepOptions>("neuroshard-to-sharded",
                                        "From the logical to the sharded level",
                                        buildToSharded);
  PassPipelineRegistration<StepOptions>(
      "neuroshard-to-partitioned", "From the logical to the partitioned level",
      [](OpPassManager &pm, const StepOptions &options) {
        buildToSharded(pm, options);
        buildShardedToPartitioned(pm);
      });
  PassPipelineRegistration<ReferenceOptions>(
      "neuroshard-reference",
      "From the logical level to the naive program that defines its meaning",
      buildReference);
  PassPipelineRegistration<ToNativeOptions>(
      "neuroshard-to-native",
      "From the partitioned level to the LLVM dialect, for one device program",
      [](OpPassManager &pm, const ToNativeOptions &options) {
        buildPartitionedToNative(pm, options.program);
      });
}
