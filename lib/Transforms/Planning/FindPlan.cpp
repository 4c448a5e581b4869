//===- FindPlan.cpp - The plan and the topology of a module ---------------===//

#include "neuroshard/Transforms/FindPlan.h"
#include "neuroshard/Support/OptionText.h"
#include "neuroshard/Support/Printable.h"

using namespace mlir;
using namespace neuroshard;

using ir::PlanOp;
using ir::TopologyOp;

/// The only op of its kind in the module, or null.
template <typename OpT>
static FailureOr<OpT> findOnly(ModuleOp module, llvm::StringRef advice) {
  OpT only;
  for (OpT op : module.getOps<OpT>()) {
    if (!only) {
      only = op;
      continue;
    }
    InFlightDiagnostic diagnostic = emitError(op.getLoc())
                                    << "'" << OpT::getOperationName()
                                    << "' is not the only one in the module; "
                                    << advice;
    diagnostic.attachNote(only.getLoc()) << "another one is here";
    return diagnostic;
  }
  return only;
}

FailureOr<PlanOp> neuroshard::findPlan(ModuleOp module, llvm::StringRef name) {
  name = symbolOption(name);
  if (name.empty())
    return findOnly<PlanOp>(module,
                            "name the one that is meant: 'plan' of a pass, "
                            "'plan-name' of a pipeline or tool");
  Operation *symbol = SymbolTable::lookupSymbolIn(module, name);
  if (!symbol || isa<PlanOp>(symbol))
    return cast_or_null<PlanOp>(symbol);
  return emitError(symbol->getLoc())
         << "'" << symbol->getName() << "' op has the name '" << printable(name)
         << "' meant for a plan";
}

llvm::StringRef neuroshard::newPlanName(llvm::StringRef option) {
  llvm::StringRef name = symbolOption(option);
  return name.empty() ? "plan" : name;
}

FailureOr<TopologyOp> neuroshard::findTopology(ModuleOp module) {
  return findOnly<TopologyOp>(module, "write a plan on the one that is meant");
}

FailureOr<PlanOp> neuroshard::requirePlan(ModuleOp module,
                                          llvm::StringRef name) {
  FailureOr<PlanOp> plan = findPlan(module, name);
  if (failed(plan) || *plan)
    return plan;
  if (name.empty())
    return emitError(module.getLoc(),
                     "the module has no plan; run neuroshard-plan or "
                     "write one by hand");
  return emitError(module.getLoc(), "the module has no plan '@")
         << printable(symbolOption(name)) << "'";
}
