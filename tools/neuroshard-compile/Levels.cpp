//===- Levels.cpp - Lowers a module level by level ------------------------===//

#include "Levels.h"

#include "neuroshard/Conversion/Passes.h"
#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Pipelines/Pipelines.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/PlannerConversion.h"
#include "neuroshard/Transforms/StepFunctions.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"

using namespace mlir;

namespace neuroshard {

OwningOpRef<ModuleOp> readModule(StringRef path, llvm::SourceMgr &sources,
                                 MLIRContext &context) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &message);
  if (!file) {
    emitError(UnknownLoc::get(&context)) << message;
    return {};
  }
  sources.AddNewSourceBuffer(std::move(file), SMLoc());
  return parseSourceFile<ModuleOp>(sources, &context);
}

bool isPartitioned(ModuleOp module) {
  return !module.getOps<ir::DeviceProgramOp>().empty();
}

/// Runs the passes that `addPasses` adds.
static LogicalResult
runPasses(ModuleOp module,
          llvm::function_ref<void(OpPassManager &)> addPasses) {
  PassManager pm(module.getContext());
  addPasses(pm);
  return pm.run(module);
}

/// The topology for a plan from a file.
static FailureOr<ir::TopologyOp> getTopology(ModuleOp module,
                                             StringRef option) {
  FailureOr<ir::TopologyOp> found = findTopology(module);
  if (failed(found) || *found)
    return found;
  if (option.empty())
    return module.emitError("a plan needs a topology; add a "
                            "'neuroshard.topology' or --topology");
  Expected<Topology> parsed = parseTopology(option);
  if (!parsed)
    return emitDiagnostics(module.getLoc(), parsed.error());
  return topologyToIR(*parsed, module);
}

static LogicalResult addPlanFromFile(ModuleOp module,
                                     const CompileOptions &options) {
  FailureOr<ir::PlanOp> present = findPlan(module, options.plan.planName);
  if (failed(present))
    return mlir::failure();
  if (*present)
    return present->emitOpError("exists already; --plan takes a module "
                                "without a plan");
  Expected<ShardingPlan> read = readPlan(options.planFile);
  if (!read)
    return emitDiagnostics(UnknownLoc::get(module.getContext()), read.error());
  FailureOr<ir::TopologyOp> topology =
      getTopology(module, options.plan.topology);
  if (failed(topology))
    return mlir::failure();
  int64_t numDevices = topology->getNumDevices();
  if (read->deviceCount != numDevices)
    return emitError(topology->getLoc())
           << options.planFile << " is a plan for " << read->deviceCount
           << " devices, the topology has " << numDevices;
  StringRef name =
      options.plan.planName.empty() ? "plan" : StringRef(options.plan.planName);
  ir::PlanOp op = createPlan(module, name, *topology, read->optimizerSemantics);
  return planToIR(*read, op);
}

LogicalResult plan(ModuleOp module, const CompileOptions &options) {
  if (!options.entry.empty() && failed(keepEntry(module, options.entry)))
    return mlir::failure();
  // With both, neuroshard-plan checks that they give the same topology.
  if (options.plan.topology.empty() || !options.grid.deviceClass.empty())
    if (failed(runPasses(module, [&](OpPassManager &pm) {
          pm.addPass(createTopologyFromGrid(options.grid));
        })))
      return mlir::failure();
  if (!options.planFile.empty() && failed(addPlanFromFile(module, options)))
    return mlir::failure();
  return runPasses(
      module, [&](OpPassManager &pm) { pm.addPass(createPlan(options.plan)); });
}

FailureOr<std::string> getPlanJson(ModuleOp module) {
  FailureOr<ir::PlanOp> op = findPlan(module, {});
  if (failed(op))
    return mlir::failure();
  FailureOr<ShardingPlan> plan = planFromIR(*op);
  if (failed(plan))
    return mlir::failure();
  return writePlan(*plan);
}

LogicalResult shard(ModuleOp module, const CompileOptions &options) {
  return runPasses(module, [&](OpPassManager &pm) {
    buildPlannedToSharded(pm, options.entry, options.training);
  });
}

LogicalResult partition(ModuleOp module) {
  return runPasses(module, buildShardedToPartitioned);
}

LogicalResult outline(ModuleOp module, const CompileOptions &options) {
  return runPasses(module, [&](OpPassManager &pm) {
    OutlineOptions outline;
    outline.entry = options.entry;
    pm.addPass(createOutline(outline));
    if (options.training)
      pm.addPass(createDifferentiate());
  });
}

LogicalResult lowerReference(ModuleOp module) {
  return runPasses(
      module, [&](OpPassManager &pm) { pm.addPass(createLowerReference()); });
}

LogicalResult convertToRuntime(ModuleOp module, StringRef program) {
  return runPasses(module, [&](OpPassManager &pm) {
    ConvertToRuntimeOptions options;
    options.program = program;
    pm.addPass(createConvertToRuntime(options));
  });
}

} // namespace neuroshard
