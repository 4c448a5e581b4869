//===- Pipelines.cpp - The order of the passes ----------------------------===//

#include "neuroshard/Pipelines/Pipelines.h"

#include "neuroshard/Conversion/Native/Pipeline.h"
#include "neuroshard/Conversion/Passes.h"
#include "neuroshard/Support/OptionText.h"

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
  VerifyPlannedOptions check;
  check.plan = options.planName;
  pm.addPass(createVerifyPlanned(check));
}

void neuroshard::buildPlannedToSharded(OpPassManager &pm, llvm::StringRef entry,
                                       bool training, llvm::StringRef plan) {
  addOutline(pm, entry, training);
  ShardOptions options;
  options.plan = plan.str();
  pm.addPass(createShard(options));
  pm.addPass(createFuse());
  pm.addPass(createVerifySharded());
}

void neuroshard::buildShardedToPartitioned(OpPassManager &pm,
                                           const PartitionOptions &options) {
  pm.addPass(createPartition(options));
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

static void addRaising(OpPassManager &pm, const PlanningOptions &options) {
  if (!options.raiseLookups)
    return;
  RaiseLookupsOptions raising;
  raising.strict = true;
  pm.addPass(createRaiseLookups(raising));
}

static void buildToSharded(OpPassManager &pm, const StepOptions &options) {
  addRaising(pm, options);
  addKeepEntry(pm, options.entry);
  buildToPlanned(pm, options.toPlanOptions(), options.toGridOptions());
  buildPlannedToSharded(pm, options.entry, options.training, options.planName);
}

/// As PassPipelineRegistration, but refuses options given twice, numbers
/// that are not decimal, and unknown options with the one that may be meant.
template <typename Options>
static void
registerPipeline(llvm::StringRef name, llvm::StringRef description,
                 std::function<void(OpPassManager &, const Options &)> build) {
  registerPassPipeline(
      name, description,
      [name = name.str(), build = std::move(build)](
          OpPassManager &pm, llvm::StringRef text,
          llvm::function_ref<LogicalResult(const llvm::Twine &)> errorHandler) {
        if (std::string error = optionTextError(text); !error.empty())
          return errorHandler(error);
        Options options;
        std::string error, printed;
        llvm::raw_string_ostream errorStream(error), optionStream(printed);
        if (failed(options.parseFromString(text, errorStream))) {
          Options().print(optionStream);
          return errorHandler(unknownOptionError(name, error, printed));
        }
        build(pm, options);
        return success();
      },
      [](llvm::function_ref<void(const detail::PassOptions &)> show) {
        show(Options());
      });
}

void neuroshard::registerPipelines() {
  registerPipeline<PlanningOptions>(
      "neuroshard-to-planned", "From the logical to the planned level",
      [](OpPassManager &pm, const PlanningOptions &options) {
        addRaising(pm, options);
        buildToPlanned(pm, options.toPlanOptions(), options.toGridOptions());
      });
  registerPipeline<StepOptions>("neuroshard-to-sharded",
                                "From the logical to the sharded level",
                                buildToSharded);
  registerPipeline<ToPartitionedOptions>(
      "neuroshard-to-partitioned", "From the logical to the partitioned level",
      [](OpPassManager &pm, const ToPartitionedOptions &options) {
        buildToSharded(pm, options);
        PartitionOptions partition;
        partition.localReductions = options.localReductions;
        buildShardedToPartitioned(pm, partition);
      });
  registerPipeline<ReferenceOptions>(
      "neuroshard-reference",
      "From the logical level to the naive program that defines its meaning",
      buildReference);
  registerPipeline<ToNativeOptions>(
      "neuroshard-to-native",
      "From the partitioned level to the LLVM dialect, for one device program",
      [](OpPassManager &pm, const ToNativeOptions &options) {
        buildPartitionedToNative(pm, options.program);
      });
}
