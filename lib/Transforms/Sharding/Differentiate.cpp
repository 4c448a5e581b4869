//===- Differentiate.cpp - Add the update function ------------------------===//

#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/StepFunctions.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"

namespace neuroshard {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

namespace {

/// Lookups with the values that belong to each.
struct LookupGroup {
  SmallVector<Attribute> lookups;
  SmallVector<Value> ids;
  SmallVector<Value> gradients;

  void add(LookupOp lookup, Value idsValue, Value gradient) {
    lookups.push_back(lookup.getLookup());
    ids.push_back(idsValue);
    gradients.push_back(gradient);
  }
};

struct Differentiate : neuroshard::impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override;
  FailureOr<SmallVector<LookupOp>> findLookups(StepFunctions &step);
  FailureOr<ContextType> saveIds(StepFunctions &step);
  void discardInCallers(StepFunctions &step);
  void createUpdate(StepFunctions &step, ContextType context,
                    ArrayRef<LookupOp> lookups, const SymbolTable &symbols);
};

/// The lookups in the order of wait's results.
FailureOr<SmallVector<LookupOp>>
Differentiate::findLookups(StepFunctions &step) {
  SmallVector<LookupOp> lookups;
  for (Value result : step.getLookupResults()) {
    auto lookup = result.getDefiningOp<LookupOp>();
    if (!lookup || lookup.getIds().getDefiningOp() != step.resume)
      return step.wait.emitError("results of '@")
             << kWaitName
             << "' must be lookups of its ids; run neuroshard-differentiate "
                "right after neuroshard-outline, before neuroshard-shard";
    lookups.push_back(lookup);
  }
  return lookups;
}

/// Makes a context of the ids the last result of wait.
FailureOr<ContextType> Differentiate::saveIds(StepFunctions &step) {
  Operation *terminator = step.wait.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  auto context = ContextType::get(
      &getContext(), SmallVector<Type>(step.resume.getValues().getTypes()));
  Value saved = SaveOp::create(builder, step.wait.getLoc(), context,
                               step.resume.getValues());
  terminator->insertOperands(terminator->getNumOperands(), saved);
  if (failed(step.wait.insertResult(step.wait.getNumResults(), context,
                                    DictionaryAttr())))
    return failure();
  return context;
}

/// Callers of wait get the context too; forward alone does not need it.
void Differentiate::discardInCallers(StepFunctions &step) {
  for (func::CallOp call : callsOf(step.wait)) {
    OpBuilder builder(call);
    auto replacement = func::CallOp::create(builder, call.getLoc(), step.wait,
                                            call.getOperands());
    DiscardOp::create(builder, call.getLoc(), replacement.getResults().back());
    call.replaceAllUsesWith(replacement.getResults().drop_back());
    call.erase();
  }
}

void Differentiate::createUpdate(StepFunctions &step, ContextType context,
                                 ArrayRef<LookupOp> lookups,
                                 const SymbolTable &symbols) {
  Location loc = step.wait.getLoc();
  OpBuilder builder(&getContext());
  builder.setInsertionPointAfter(step.wait);
  SmallVector<Type> inputs = {context};
  for (LookupOp lookup : lookups)
    inputs.push_back(lookup.getResult().getType());
  inputs.append({builder.getF32Type(), builder.getI64Type()});
  auto update = func::FuncOp::create(builder, loc, kUpdateName,
                                     builder.getFunctionType(inputs, {}));
  builder.setInsertionPointToStart(update.addEntryBlock());
  auto restore = RestoreOp::create(builder, loc, context.getTypes(),
                                   update.getArgument(0));

  llvm::MapVector<Value, LookupGroup> weighted;
  llvm::MapVector<TableOp, LookupGroup> trained;
  for (auto [index, value] : llvm::enumerate(lookups)) {
    LookupOp lookup = value;
    unsigned input = cast<OpResult>(lookup.getIds()).getResultNumber();
    Value ids = restore.getValues()[input];
    Value gradient = update.getArgument(index + 1);
    if (lookup.getWeighted())
      weighted[ids].add(lookup, ids, gradient);
    auto table = symbols.lookup<TableOp>(lookup.getTable());
    if (table.getOptimizer())
      trained[table].add(lookup, ids, gradient);
  }
  SmallVector<Value> results;
  auto weightsType =
      RankedTensorType::get({ShapedType::kDynamic}, builder.getF32Type());
  // Arguments are in the order of the ids, not of the lookups.
  for (Value ids : restore.getValues()) {
    auto *group = weighted.find(ids);
    if (group == weighted.end())
      continue;
    results.push_back(WeightsGradientOp::create(
        builder, loc, weightsType, ids,
        builder.getArrayAttr(group->second.lookups), group->second.gradients));
  }
  Value rate = *std::prev(update.args_end(), 2);
  Value stepNumber = update.getArguments().back();
  for (auto &[table, group] : trained) {
    UpdateOp::create(builder, table.getLoc(), table.getSymNameAttr(),
                     builder.getArrayAttr(group.lookups), group.ids,
                     group.gradients, rate, stepNumber);
    ++numTrained;
  }
  remark::passed(loc, remark::RemarkOpts::name("Differentiated")
                          .category("neuroshard-differentiate"))
      << remark::add("{0} tables get an update", trained.size());
  func::ReturnOp::create(builder, loc, results);
  SmallVector<Type> resultTypes(results.size(), weightsType);
  update.setFunctionType(builder.getFunctionType(inputs, resultTypes));
}

void Differentiate::runOnOperation() {
  ModuleOp module = getOperation();
  for (const char *name : {kGradientsName, kUpdateName})
    if (Operation *taken = module.lookupSymbol(name)) {
      taken->emitError("the name '@")
          << name << "' is needed for the update, but taken";
      return signalPassFailure();
    }
  FailureOr<StepFunctions> step = StepFunctions::find(module);
  if (failed(step))
    return signalPassFailure();
  FailureOr<SmallVector<LookupOp>> lookups = findLookups(*step);
  if (failed(lookups))
    return signalPassFailure();
  SymbolTable symbols(module);
  if (llvm::none_of(*lookups, [&](LookupOp lookup) {
        return symbols.lookup<TableOp>(lookup.getTable()).getOptimizer();
      })) {
    step->wait.emitError(
        "no looked-up table has an optimizer, so there is nothing to train; "
        "give a table an optimizer, or compile without training");
    return signalPassFailure();
  }
  FailureOr<ContextType> context = saveIds(*step);
  if (failed(context))
    return signalPassFailure();
  createUpdate(*step, *context, *lookups, symbols);
  discardInCallers(*step);
}

} // namespace
