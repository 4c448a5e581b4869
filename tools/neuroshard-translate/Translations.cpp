//===- Translations.cpp - IR to workload and plan JSON, and back ----------===//

#include "Translations.h"

#include "neuroshard/InitAll.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/EmitDiagnostics.h"
#include "neuroshard/Transforms/FindPlan.h"
#include "neuroshard/Transforms/PlannerConversion.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace neuroshard;

using ir::PlanOp;
using ir::TopologyOp;

namespace {

/// Options beside those of MLIR's driver.
struct TranslationOptions {
  llvm::cl::opt<std::string> topology{
      "topology",
      llvm::cl::desc("Devices, such as 8xH200, for a workload or module that "
                     "has no topology")};
  llvm::cl::opt<std::string> module{
      "module", llvm::cl::desc("IR with the tables of the plan "
                               "(--json-to-plan)")};
  llvm::cl::opt<std::string> planName{
      "plan-name",
      llvm::cl::desc("Symbol of the plan; default: the only one, or @plan")};
};

TranslationOptions &options() {
  static TranslationOptions instance;
  return instance;
}

/// Errors in JSON say where in the document they are; a syntax error, reported
/// as "... at line 3, column 5: ...", also where in the text. Column 0 keeps
/// the driver from showing the first line, which may be the whole document.
Location locationOf(MLIRContext *context, llvm::StringRef file,
                    llvm::StringRef message) {
  unsigned line = 1, column = 0;
  llvm::SmallVector<llvm::StringRef> match;
  if (llvm::Regex("at line ([0-9]+), column ([0-9]+)").match(message, &match)) {
    match[1].getAsInteger(10, line);
    match[2].getAsInteger(10, column);
  }
  return FileLineColLoc::get(context, file, line, column);
}

LogicalResult emitJsonErrors(MLIRContext *context, llvm::StringRef file,
                             const Diagnostics &errors) {
  const std::string first = errors.empty() ? "" : errors.front().message;
  return emitDiagnostics(locationOf(context, file, first), errors);
}

/// The text of the input, and its name.
std::pair<llvm::StringRef, llvm::StringRef>
inputOf(const llvm::SourceMgr &sources) {
  const llvm::MemoryBuffer *buffer =
      sources.getMemoryBuffer(sources.getMainFileID());
  return {buffer->getBuffer(), buffer->getBufferIdentifier()};
}

/// The topology that the option gives.
FailureOr<Topology> topologyOption(MLIRContext *context) {
  Expected<Topology> topology = topologyNamed(options().topology);
  if (topology)
    return *topology;
  return emitDiagnostics(UnknownLoc::get(context), topology.error());
}

/// Fails when the option gives a topology beside that of the module.
LogicalResult refuseSecondTopology(Operation *topology) {
  if (options().topology.empty())
    return success();
  return topology->emitError(
      "the module has a topology, and --topology gives another");
}

OwningOpRef<Operation *> workloadToMLIR(llvm::SourceMgr &sources,
                                        MLIRContext *context) {
  auto [text, name] = inputOf(sources);
  Expected<ShardingProblem> problem = parseWorkload(text);
  if (!problem) {
    (void)emitJsonErrors(context, name, problem.error());
    return {};
  }
  if (!options().topology.empty()) {
    if (!problem->topology.devices.empty()) {
      (void)emitJsonErrors(context, name,
                           {{"topology", "the workload has a topology, and "
                                         "--topology gives another"}});
      return {};
    }
    FailureOr<Topology> topology = topologyOption(context);
    if (failed(topology))
      return {};
    problem->topology = std::move(*topology);
    if (Diagnostics errors = check(*problem); !errors.empty()) {
      (void)emitJsonErrors(context, name, errors);
      return {};
    }
  }
  FailureOr<OwningOpRef<ModuleOp>> module =
      problemToIR(*problem, locationOf(context, name, ""));
  if (failed(module))
    return {};
  return OwningOpRef<Operation *>(module->release());
}

LogicalResult mlirToWorkload(Operation *op, llvm::raw_ostream &output) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return emitError(op->getLoc(), "expected a module");
  FailureOr<PlanOp> plan = findPlan(module, options().planName);
  if (failed(plan))
    return failure();
  FailureOr<ShardingProblem> problem =
      *plan ? problemFromIR(*plan) : problemFromIR(module);
  if (failed(problem))
    return failure();
  if (*plan) {
    if (failed(refuseSecondTopology(*plan)))
      return failure();
    fixShards(*plan, *problem);
  } else {
    FailureOr<TopologyOp> topologyOp = findTopology(module);
    if (failed(topologyOp))
      return failure();
    if (*topologyOp || !options().topology.empty()) {
      if (*topologyOp && failed(refuseSecondTopology(*topologyOp)))
        return failure();
      FailureOr<Topology> topology = *topologyOp
                                         ? topologyFromIR(*topologyOp)
                                         : topologyOption(op->getContext());
      if (failed(topology))
        return failure();
      problem->topology = std::move(*topology);
    }
  }
  Diagnostics errors = problem->topology.devices.empty()
                           ? checkWorkload(*problem)
                           : check(*problem);
  if (!errors.empty())
    return emitDiagnostics(module.getLoc(), errors);
  output << writeWorkload(*problem);
  return success();
}

LogicalResult planToJson(Operation *op, llvm::raw_ostream &output) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return emitError(op->getLoc(), "expected a module");
  FailureOr<PlanOp> planOp = findPlan(module, options().planName);
  if (failed(planOp))
    return failure();
  if (!*planOp)
    return emitError(module.getLoc(), "the module has no plan");
  if (failed(refuseSecondTopology(*planOp)))
    return failure();
  FailureOr<ShardingPlan> plan = planFromIR(*planOp);
  if (failed(plan))
    return failure();
  output << writePlan(*plan);
  return success();
}

/// The plan op to write `plan` to.
FailureOr<PlanOp> planOpFor(const ShardingPlan &plan, ModuleOp module) {
  FailureOr<PlanOp> found = findPlan(module, options().planName);
  if (failed(found) || (*found && failed(refuseSecondTopology(*found))))
    return failure();
  if (*found)
    return found;
  FailureOr<TopologyOp> topologyOp = findTopology(module);
  if (failed(topologyOp))
    return failure();
  if (!*topologyOp) {
    if (options().topology.empty())
      return emitError(module.getLoc(),
                       "a plan needs a topology; add a "
                       "'neuroshard.topology' or --topology=8xH200");
    FailureOr<Topology> topology = topologyOption(module.getContext());
    if (failed(topology))
      return failure();
    topologyOp = topologyToIR(*topology, module);
  } else if (failed(refuseSecondTopology(*topologyOp))) {
    return failure();
  }
  llvm::StringRef name = newPlanName(options().planName);
  if (Operation *taken = SymbolTable::lookupSymbolIn(module, name))
    return emitError(taken->getLoc())
           << "'" << taken->getName() << "' op has the name '"
           << printable(name)
           << "' of the plan; choose another with --plan-name";
  return createPlan(module, name, *topologyOp, plan.optimizerSemantics);
}

/// A module need not say its batch for a plan to be written into it; the
/// memory of the ids and results is then that of one sample.
LogicalResult verifyPlan(const ShardingPlan &plan, PlanOp op,
                         llvm::StringRef file) {
  FailureOr<ShardingProblem> problem = problemFromIR(op);
  if (failed(problem))
    return failure();
  problem->batch.globalSize = std::max<int64_t>(problem->batch.globalSize, 1);
  if (Diagnostics errors = check(*problem); !errors.empty())
    return emitDiagnostics(op.getLoc(), errors);
  if (Diagnostics errors = verify(plan, *problem); !errors.empty())
    return emitJsonErrors(op.getContext(), file, errors);
  return success();
}

OwningOpRef<Operation *> jsonToPlan(llvm::SourceMgr &sources,
                                    MLIRContext *context) {
  auto [text, name] = inputOf(sources);
  Expected<ShardingPlan> plan = parsePlan(text);
  if (!plan) {
    (void)emitJsonErrors(context, name, plan.error());
    return {};
  }
  if (options().module.empty()) {
    emitError(UnknownLoc::get(context), "--json-to-plan needs the tables of "
                                        "the plan: --module=FILE.mlir");
    return {};
  }
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(options().module, context);
  if (!module)
    return {};
  FailureOr<PlanOp> op = planOpFor(*plan, *module);
  if (failed(op) || failed(planToIR(*plan, *op)))
    return {};
  if (failed(verifyPlan(*plan, *op, name)))
    return {};
  return OwningOpRef<Operation *>(module.release());
}

} // namespace

void neuroshard::registerTranslations() {
  options();
  static TranslateToMLIRRegistration workloadToIR(
      "workload-to-mlir", "workload JSON to a logical module", workloadToMLIR,
      registerAllDialects);
  static TranslateFromMLIRRegistration irToWorkload(
      "mlir-to-workload", "planning problem of a module to workload JSON",
      mlirToWorkload, registerAllDialects);
  static TranslateFromMLIRRegistration irToPlan(
      "plan-to-json", "plan of a module to plan JSON", planToJson,
      registerAllDialects);
  static TranslateToMLIRRegistration planToIRModule(
      "json-to-plan", "plan JSON into the module with its tables", jsonToPlan,
      registerAllDialects);
}
