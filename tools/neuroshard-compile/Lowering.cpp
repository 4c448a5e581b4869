//===- Lowering.cpp - Lowers a module level by level ----------------------===//

#include "Lowering.h"

#include "InputFile.h"
#include "PlanFile.h"

#include "neuroshard/Conversion/Passes.h"
#include "neuroshard/Conversion/RunPasses.h"
#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Pipelines/Pipelines.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Transforms/FindPlan.h"
#include "neuroshard/Transforms/KeepEntry.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/PlannerConversion.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace neuroshard {

OwningOpRef<ModuleOp> readModule(StringRef path, llvm::SourceMgr &sources,
                                 MLIRContext &context) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInput(path, message);
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

LogicalResult plan(ModuleOp module, const CompileOptions &options) {
  if (!options.entry.empty() && failed(keepEntry(module, options.entry)))
    return mlir::failure();
  // With both, neuroshard-plan checks that they give the same topology.
  if (options.plan.topology.empty() || !options.grid.deviceClass.empty())
    if (failed(runPasses(module, options.native.crashReproducer,
                         [&](OpPassManager &pm) {
                           pm.addPass(createTopologyFromGrid(options.grid));
                         })))
      return mlir::failure();
  if (!options.planFile.empty() && failed(addPlanFromFile(module, options)))
    return mlir::failure();
  return runPasses(
      module, options.native.crashReproducer,
      [&](OpPassManager &pm) { pm.addPass(createPlan(options.plan)); });
}

FailureOr<std::string> getPlanJson(ModuleOp module, StringRef name) {
  FailureOr<ir::PlanOp> op = findPlan(module, name);
  if (failed(op))
    return mlir::failure();
  FailureOr<ShardingPlan> plan = planFromIR(*op);
  if (failed(plan))
    return mlir::failure();
  return writePlan(*plan);
}

LogicalResult shard(ModuleOp module, const CompileOptions &options) {
  return runPasses(module, options.native.crashReproducer,
                   [&](OpPassManager &pm) {
                     buildPlannedToSharded(pm, options.entry, options.training,
                                           options.plan.planName);
                   });
}

LogicalResult partition(ModuleOp module, const CompileOptions &options) {
  return runPasses(module, options.native.crashReproducer,
                   [&](OpPassManager &pm) {
                     buildShardedToPartitioned(pm, options.partition);
                   });
}

LogicalResult outline(ModuleOp module, const CompileOptions &options) {
  return runPasses(module, options.native.crashReproducer,
                   [&](OpPassManager &pm) {
                     OutlineOptions outline;
                     outline.entry = options.entry;
                     pm.addPass(createOutline(outline));
                     if (options.training)
                       pm.addPass(createDifferentiate());
                   });
}

LogicalResult lowerReference(ModuleOp module, const CompileOptions &options) {
  return runPasses(
      module, options.native.crashReproducer,
      [&](OpPassManager &pm) { pm.addPass(createLowerReference()); });
}

LogicalResult convertToRuntime(ModuleOp module, StringRef program,
                               const CompileOptions &options) {
  return runPasses(module, options.native.crashReproducer,
                   [&](OpPassManager &pm) {
                     ConvertToRuntimeOptions conversion;
                     conversion.program = program;
                     pm.addPass(createConvertToRuntime(conversion));
                   });
}

} // namespace neuroshard
