//===- StepFunctions.cpp - Start, wait and update of a module -------------===//

#include "neuroshard/Transforms/StepFunctions.h"
#include "neuroshard/Support/Printable.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

static FailureOr<func::FuncOp>
findFunction(ModuleOp module, llvm::StringRef name, llvm::StringRef maker) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function)
    return emitError(module.getLoc(), "the module has no function '@")
           << name << "'; run " << maker << " first";
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function.emitError("'@")
           << name << "' must have a body of one block, as " << maker
           << " makes it";
  return function;
}

/// The only op of a kind in the body of a step function.
template <typename OpT> static FailureOr<OpT> findOnly(func::FuncOp function) {
  auto ops = function.getOps<OpT>();
  if (llvm::hasSingleElement(ops))
    return *ops.begin();
  return function.emitError("'@")
         << printable(function.getSymName()) << "' must have exactly one '"
         << OpT::getOperationName() << "'";
}

/// Whether update's arguments are a context, gradients, rate and step.
static LogicalResult verifyUpdateArguments(StepFunctions &step) {
  unsigned expected = step.getNumLookups() + 3;
  if (step.update.getNumArguments() != expected)
    return step.update.emitError("'@")
           << kUpdateName << "' must take a context, one gradient for each of "
           << step.getNumLookups() << " lookups, learning rate and step, got: "
           << step.update.getNumArguments() << " arguments";
  for (auto [gradient, result] :
       llvm::zip(step.getGradients(), step.getLookupResults()))
    if (gradient.getType() != result.getType())
      return step.update.emitError("gradient #")
             << gradient.getArgNumber() - 1 << " of '@" << kUpdateName
             << "' must have the type of its lookup's result, "
             << result.getType() << ", got: " << gradient.getType();
  if (step.getLearningRate().getType().isF32() &&
      step.getStep().getType().isInteger(64))
    return success();
  return step.update.emitError("the last arguments of '@")
         << kUpdateName << "' must be a learning rate, f32, and a step, i64";
}

/// Checks that `to` takes and unbundles the bundle that is the last result of
/// `from`.
template <typename BundleOp, typename UnbundleOp>
static LogicalResult verifyHandOver(func::FuncOp from, BundleOp bundle,
                                    func::FuncOp to, UnbundleOp unbundle) {
  Operation *terminator = from.getBody().front().getTerminator();
  if (terminator->getNumOperands() == 0 || to.getNumArguments() == 0 ||
      terminator->getOperands().back() != bundle.getBundle() ||
      !llvm::is_contained(to.getArguments(), unbundle.getBundle()) ||
      bundle.getBundle().getType() != unbundle.getBundle().getType())
    return to.emitError("'@")
           << printable(to.getSymName()) << "' must take the last result of '@"
           << printable(from.getSymName()) << "'";
  return success();
}

static LogicalResult findTrainingOps(StepFunctions &step) {
  FailureOr<SaveOp> save = findOnly<SaveOp>(step.wait);
  FailureOr<RestoreOp> restore = findOnly<RestoreOp>(step.update);
  if (failed(save) || failed(restore))
    return mlir::failure();
  step.save = *save;
  step.restore = *restore;
  if (failed(verifyHandOver(step.wait, *save, step.update, *restore)))
    return mlir::failure();
  return verifyUpdateArguments(step);
}

FailureOr<StepFunctions> StepFunctions::find(ModuleOp module) {
  FailureOr<func::FuncOp> start =
      findFunction(module, kStartName, "neuroshard-outline");
  if (failed(start))
    return mlir::failure();
  FailureOr<func::FuncOp> wait =
      findFunction(module, kWaitName, "neuroshard-outline");
  if (failed(wait))
    return mlir::failure();
  FailureOr<SuspendOp> suspend = findOnly<SuspendOp>(*start);
  FailureOr<ResumeOp> resume = findOnly<ResumeOp>(*wait);
  if (failed(suspend) || failed(resume))
    return mlir::failure();
  if (failed(verifyHandOver(*start, *suspend, *wait, *resume)))
    return mlir::failure();
  StepFunctions step = {*start, *wait, *suspend, *resume, {}, {}, {}};
  if (!module.lookupSymbol(kUpdateName))
    return step;
  FailureOr<func::FuncOp> update =
      findFunction(module, kUpdateName, "neuroshard-differentiate");
  if (failed(update))
    return mlir::failure();
  step.update = *update;
  if (failed(findTrainingOps(step)))
    return mlir::failure();
  return step;
}

SmallVector<func::CallOp> neuroshard::callsOf(func::FuncOp function) {
  SmallVector<func::CallOp> calls;
  for (auto caller : function->getParentRegion()->getOps<func::FuncOp>())
    caller.walk([&](func::CallOp call) {
      if (call.getCalleeAttr().getAttr() == function.getSymNameAttr())
        calls.push_back(call);
    });
  return calls;
}

unsigned StepFunctions::getNumLookups() { return getLookupResults().size(); }

OperandRange StepFunctions::getLookupResults() {
  OperandRange results = wait.getBody().front().getTerminator()->getOperands();
  return isTraining() && !results.empty() ? results.drop_back() : results;
}

MutableArrayRef<BlockArgument> StepFunctions::getGradients() {
  return update.getArguments().drop_front().drop_back(2);
}

Value StepFunctions::getLearningRate() {
  return update.getArguments().drop_back().back();
}

Value StepFunctions::getStep() { return update.getArguments().back(); }

FailureOr<PlanOp> StepFunctions::getPlan() {
  auto name =
      start->getAttrOfType<FlatSymbolRefAttr>(NeuroShardDialect::kPlanAttrName);
  if (!name)
    return start.emitError("'@") << kStartName << "' names no plan by '"
                                 << NeuroShardDialect::kPlanAttrName
                                 << "'; run neuroshard-shard first";
  if (auto plan = start->getParentOfType<ModuleOp>().lookupSymbol<PlanOp>(
          name.getAttr()))
    return plan;
  return start.emitError("'@")
         << kStartName << "' is distributed by the plan '@"
         << printable(name.getValue()) << "', which the module does not have";
}

std::optional<unsigned> StepFunctions::getInput(Value ids) {
  auto result = dyn_cast<OpResult>(ids);
  if (result && restore && result.getOwner() == restore)
    result = dyn_cast<OpResult>(save.getValues()[result.getResultNumber()]);
  if (result && result.getOwner() == resume)
    result = dyn_cast<OpResult>(suspend.getValues()[result.getResultNumber()]);
  if (!result)
    return std::nullopt;
  if (auto distribute = dyn_cast<DistributeIdsOp>(result.getOwner()))
    return getInput(distribute.getIds());
  auto scatter = dyn_cast<ScatterBatchOp>(result.getOwner());
  auto argument =
      scatter ? dyn_cast<BlockArgument>(scatter.getInput()) : BlockArgument();
  if (!argument || argument.getOwner()->getParentOp() != start)
    return std::nullopt;
  return argument.getArgNumber();
}
