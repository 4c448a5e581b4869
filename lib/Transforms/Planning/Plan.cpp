//===- Plan.cpp - Decide where every shard of every table lies ------------===//

#include "neuroshard/Transforms/PlanPasses.h"

#include "PlanCoverage.h"
#include "Remarks/PlanPlaces.h"
#include "Remarks/PlanRemarks.h"

#include "neuroshard/CostModel/NeuralPolicy.h"
#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Dialect/CheckedOptions.h"
#include "neuroshard/Model/EnumNames.h"
#include "neuroshard/Planner/Assumptions.h"
#include "neuroshard/Planner/SearchOptionTable.h"
#include "neuroshard/Planner/TerminalProgress.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/EmitDiagnostics.h"
#include "neuroshard/Transforms/FindPlan.h"
#include "neuroshard/Transforms/PlannerConversion.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;
using namespace neuroshard;

using ir::PlanOp;
using ir::TopologyOp;

namespace neuroshard {
#define GEN_PASS_DEF_PLAN
#include "neuroshard/Transforms/PlanPasses.h.inc"
} // namespace neuroshard

namespace {

/// Sets `out` to the value that `text` names, unless that is empty.
template <typename Enum>
LogicalResult
parseName(Operation *op, llvm::StringRef option, llvm::StringRef text,
          std::optional<Enum> (*parse)(std::string_view), Enum &out) {
  if (text.empty())
    return success();
  std::optional<Enum> value = parse(text);
  if (!value)
    return emitError(op->getLoc(), "option '")
           << option << "' must be " << choicesOf<Enum>() << ", got: '"
           << printable(text) << "'";
  out = *value;
  return success();
}

LogicalResult parseBytes(Operation *op, llvm::StringRef option,
                         llvm::StringRef text, std::optional<int64_t> &out) {
  if (text.empty())
    return success();
  if (text == "0") { // Not a size for parseByteSize(), but a reserve.
    out = 0;
    return success();
  }
  Expected<int64_t> bytes = parseByteSize(text);
  if (!bytes)
    return emitError(op->getLoc(), "option '")
           << option << "': " << toString(bytes.error());
  out = *bytes;
  return success();
}

LogicalResult emitPlanningError(Location loc, const PlanningError &error) {
  InFlightDiagnostic diagnostic =
      emitError(loc) << "no plan: " << llvm::StringRef(toString(error.limit))
                     << ": " << printable(error.message);
  for (const std::string &detail : error.details)
    diagnostic.attachNote() << printable(detail);
  if (!error.advice.empty())
    diagnostic.attachNote() << "advice: " << printable(error.advice);
  return diagnostic;
}

struct PlanPass : public CheckedOptions<neuroshard::impl::PlanBase<PlanPass>> {
  using CheckedOptions::CheckedOptions;

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run();
  FailureOr<PlanOp> findOrCreatePlan();
  FailureOr<TopologyOp> findOrCreateTopology();
  LogicalResult checkTopology(TopologyOp op);
  LogicalResult changeProblem(ShardingProblem &problem);
  SearchOptionValues searchOptionValues();
  LogicalResult refuseSearchOptions();
  FailureOr<SearchOptions> readSearchOptions();
  LogicalResult readPolicy(std::unique_ptr<PlacementPolicy> &out,
                           SearchOptions &options);
  void keepWireType(std::optional<WireType> chosen, ShardingProblem &problem);
  LogicalResult complete(PlanOp plan, ShardingProblem &problem);
};

/// A topology given as an option must be the one that is there.
LogicalResult PlanPass::checkTopology(TopologyOp op) {
  if (topology.empty())
    return success();
  Expected<Topology> wanted = topologyNamed(topology);
  if (!wanted)
    return emitDiagnostics(op.getLoc(), wanted.error());
  FailureOr<Topology> found = topologyFromIR(op);
  if (failed(found))
    return failure();
  if (*found == *wanted)
    return success();
  InFlightDiagnostic diagnostic =
      emitError(getOperation().getLoc(), "option 'topology'")
      << " is '" << printable(topology.getValue())
      << "', but the module has another topology; "
         "change one of them";
  diagnostic.attachNote(op.getLoc()) << "the module's topology is here";
  return diagnostic;
}

FailureOr<TopologyOp> PlanPass::findOrCreateTopology() {
  FailureOr<TopologyOp> found = findTopology(getOperation());
  if (failed(found) || *found)
    return found;
  if (topology.empty()) {
    InFlightDiagnostic diagnostic = emitError(
        getOperation().getLoc(),
        "a plan needs a topology; add a 'neuroshard.topology' or the option "
        "'topology', such as topology=8xH200");
    for (shard::GridOp grid : getOperation().getOps<shard::GridOp>())
      diagnostic.attachNote(grid.getLoc())
          << "neuroshard-topology-from-grid makes one of this";
    return diagnostic;
  }
  Expected<Topology> parsed = topologyNamed(topology);
  if (!parsed)
    return emitDiagnostics(getOperation().getLoc(), parsed.error());
  return topologyToIR(*parsed, getOperation());
}

FailureOr<PlanOp> PlanPass::findOrCreatePlan() {
  ModuleOp module = getOperation();
  FailureOr<PlanOp> plan = findPlan(module, planName);
  if (failed(plan))
    return failure();
  if (*plan) {
    auto topologyOp = SymbolTable::lookupNearestSymbolFrom<TopologyOp>(
        *plan, plan->getTopologyAttr());
    return failed(checkTopology(topologyOp)) ? FailureOr<PlanOp>() : plan;
  }
  FailureOr<TopologyOp> topologyOp = findOrCreateTopology();
  if (failed(topologyOp) || failed(checkTopology(*topologyOp)))
    return failure();
  FailureOr<ShardingProblem> problem = problemFromIR(module);
  if (failed(problem))
    return failure();
  llvm::StringRef name = newPlanName(planName);
  if (Operation *taken = SymbolTable::lookupSymbolIn(module, name))
    return emitError(taken->getLoc())
           << "'" << taken->getName() << "' op has the name '"
           << printable(name)
           << "' of the plan; choose another with 'plan-name'";
  return createPlan(module, name, *topologyOp, problem->optimizerSemantics);
}

/// What the options say goes before what the module says.
LogicalResult PlanPass::changeProblem(ShardingProblem &problem) {
  ModuleOp module = getOperation();
  if (batch.isGiven())
    problem.batch.globalSize = batch.value;
  else if (problem.batch.globalSize == 0)
    return emitError(module.getLoc(),
                     "the global batch is not known; set the attribute "
                     "'neuroshard.batch' or the option 'batch'");
  if (failed(parseName(module, "target", target, parseTarget, problem.target)))
    return failure();
  if (failed(parseName(module, "mode", mode, parseStepMode, problem.mode)))
    return failure();
  if (problem.mode == StepMode::Inference)
    problem = served(std::move(problem));
  if (failed(parseName(module, "memory-model", memoryModel, parseMemoryModel,
                       problem.memoryModel)))
    return failure();
  if (failed(parseName(module, "semantics", semantics, parseOptimizerSemantics,
                       problem.optimizerSemantics)))
    return failure();
  if (failed(parseName(module, "wire-type", wireType, parseWireType,
                       problem.batch.wireType)))
    return failure();
  Reserves &reserves = problem.constraints.reserves;
  return success(
      succeeded(parseBytes(module, "dense-reserve", denseReserve,
                           reserves.denseBytes)) &&
      succeeded(parseBytes(module, "fragmentation-reserve",
                           fragmentationReserve,
                           reserves.fragmentationBytes)) &&
      succeeded(parseBytes(module, "communicator-reserve", communicatorReserve,
                           reserves.communicatorBytes)));
}

SearchOptionValues PlanPass::searchOptionValues() {
  SearchOptionValues values;
#define SEARCH_TEXT(ID, ...) values.ID = ID;
#define SEARCH_WHOLE(ID, ...) values.ID = ID;
#define SEARCH_NUMBER(ID, ...) values.ID = ID;
#include "neuroshard/Planner/SearchOptions.def"
  return values;
}

/// A complete plan needs no search.
LogicalResult PlanPass::refuseSearchOptions() {
  SearchOptionValues values = searchOptionValues(), defaults;
  llvm::StringRef given;
#define SEARCH_TEXT(ID, KEY, ...)                                              \
  if (values.ID != defaults.ID)                                                \
    given = KEY;
#define SEARCH_WHOLE(ID, KEY, ...) SEARCH_TEXT(ID, KEY)
#define SEARCH_NUMBER(ID, KEY, ...) SEARCH_TEXT(ID, KEY)
#include "neuroshard/Planner/SearchOptions.def"
  if (given.empty())
    return success();
  return emitError(getOperation().getLoc(), "option '")
         << searchOption(given).flag
         << "' has no effect: the plan is complete, so nothing is searched";
}

FailureOr<SearchOptions> PlanPass::readSearchOptions() {
  Location loc = getOperation().getLoc();
  SearchOptionValues values = searchOptionValues();
  std::optional<ShardingPlan> inUse;
  if (!previous.empty()) {
    Expected<ShardingPlan> plan = readPlan(previous);
    if (!plan)
      return emitError(loc, "option 'previous': ") << toString(plan.error());
    inUse = *std::move(plan);
  }
  Expected<SearchOptions> options =
      makeSearchOptions(values, inUse ? &*inUse : nullptr);
  if (options)
    return *std::move(options);
  for (const neuroshard::Diagnostic &error : options.error())
    emitError(loc, "option '")
        << searchOption(error.where).flag << "': " << printable(error.message);
  return failure();
}

/// Only algorithm dreamshard has a policy.
LogicalResult PlanPass::readPolicy(std::unique_ptr<PlacementPolicy> &out,
                                   SearchOptions &options) {
  if (options.algorithm != Algorithm::DreamShard)
    return success();
  Expected<std::unique_ptr<PlacementPolicy>> read = readPlacementPolicy(policy);
  if (!read)
    return emitError(getOperation().getLoc(), "option 'policy': ")
           << toString(read.error());
  out = std::move(*read);
  options.policy = out.get();
  return success();
}

/// What the search has chosen is written into the module.
void PlanPass::keepWireType(std::optional<WireType> chosen,
                            ShardingProblem &problem) {
  if (!chosen)
    return;
  problem.batch.wireType = *chosen;
  planningToIR(problem, getOperation());
}

/// A search plans around copies of whole tables on all devices alone.
static LogicalResult checkCopies(PlanOp plan, int64_t devices) {
  SymbolTableCollection symbols;
  for (ir::ShardOp shard : plan.getOps<ir::ShardOp>()) {
    auto table = symbols.lookupNearestSymbolFrom<ir::TableOp>(
        shard, shard.getTableAttr());
    auto copies = static_cast<int64_t>(shard.getDevices().size());
    Extent part{shard.getNumRows(), shard.getWidth()};
    Extent whole{table.getRows(), table.getDim()};
    if (copies == 1 || isWholeOnAll(part, whole, copies, devices))
      continue;
    return emitError(shard.getLoc())
           << "the plan does not have all of every table, and a search plans "
              "around copies of whole tables on all "
           << devices << " devices only; shard '" << printable(shard.getName())
           << "' is " << shard.getNumRows() << " x " << shard.getWidth()
           << " of the " << table.getRows() << " x " << table.getDim()
           << " of '@" << printable(table.getSymName()) << "' on " << copies
           << " of them: write shards for all tables, or one device for this "
              "one";
  }
  return success();
}

LogicalResult PlanPass::complete(PlanOp plan, ShardingProblem &problem) {
  FailureOr<SearchOptions> options = readSearchOptions();
  std::unique_ptr<PlacementPolicy> ownPolicy;
  if (failed(options) || failed(readPolicy(ownPolicy, *options)))
    return failure();
  Expected<std::unique_ptr<CostModel>> model =
      makeCostModel(costModel.getValue(), problem.topology);
  if (!model) {
    Diagnostics errors = model.error();
    for (neuroshard::Diagnostic &error : errors)
      if (error.where == "cost_model") // The option has said it.
        error.where.clear();
    return emitError(getOperation().getLoc(), "option 'cost-model': ")
           << toString(errors);
  }
  if (!options->wireTypes.empty() && !wireType.empty())
    return emitError(getOperation().getLoc(),
                     "option 'wire-type' has no effect beside 'wire-types'; "
                     "give one of them");
  fixShards(plan, problem);
  if (failed(checkCopies(plan, problem.topology.deviceCount())))
    return failure();
  numKept = problem.constraints.fixedShards.size();
  TerminalProgress progress("planning");
  options->progress = progress.callback();
  auto result = search(problem, **model, *options);
  if (!result)
    return emitPlanningError(plan.getLoc(), result.error());
  if (failed(planToIR(result->plan, plan)))
    return failure();
  keepWireType(chosenWireType(result->plan), problem);
  numShards = result->plan.shards.size();
  numEvaluations = result->evaluations;
  emitPlanRemarks(plan, *result);
  emitCountsRemark(plan.getLoc(), plan.getSymName(), *result,
                   problem.tables.size(),
                   problem.constraints.fixedShards.size());
  emitModelRemarks(plan.getLoc(), plan.getSymName(), (*model)->name(),
                   remarksOnPlan(problem, result->plan, **model));
  emitAssumptionRemarks(plan.getLoc(), plan.getSymName(),
                        assumptionsOf(problem, options->objective));
  return success();
}

/// Warns of a plan that was made for results and gradients of other types.
void warnOfWireType(PlanOp op, const ShardingPlan &plan, WireType wireType) {
  for (const auto &[name, value] : plan.provenance.settings)
    if (name == kWireType && value != toString(wireType))
      emitWarning(op.getLoc())
          << "the plan was made for results and gradients that travel as "
          << printable(value) << "; here they travel as " << toString(wireType)
          << ", see the option 'wire-type'";
}

LogicalResult PlanPass::run() {
  FailureOr<PlanOp> plan = findOrCreatePlan();
  if (failed(plan))
    return failure();
  FailureOr<ShardingProblem> problem = problemFromIR(*plan);
  if (failed(problem) || failed(changeProblem(*problem)))
    return failure();
  if (Diagnostics errors = check(*problem); !errors.empty())
    return emitDiagnostics(plan->getLoc(), errors);
  numTables = problem->tables.size();
  planningToIR(*problem, getOperation());
  if (!coversAllTables(*plan))
    return complete(*plan, *problem);
  plan->setSemantics(problem->optimizerSemantics);
  FailureOr<ShardingPlan> written = planFromIR(*plan);
  if (failed(written))
    return failure();
  if (wireType.empty())
    keepWireType(chosenWireType(*written), *problem);
  warnOfWireType(*plan, *written, problem->batch.wireType);
  numShards = written->shards.size();
  numKept = written->shards.size();
  if (Diagnostics errors = verify(*written, *problem); !errors.empty())
    return emitDiagnostics(PlanPlaces(*plan).of(errors.front().str()), errors);
  if (failed(refuseSearchOptions()))
    return failure();
  emitKeptRemark(plan->getLoc(), plan->getSymName(), written->shards.size());
  return success();
}

} // namespace
