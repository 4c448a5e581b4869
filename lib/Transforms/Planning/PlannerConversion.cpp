//===- PlannerConversion.cpp - Finding plan and topology ------------------===//

#include "neuroshard/Transforms/PlannerConversion.h"

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
  if (name.empty())
    return findOnly<PlanOp>(module, "name the one that is meant");
  Operation *symbol = SymbolTable::lookupSymbolIn(module, name);
  if (!symbol || isa<PlanOp>(symbol))
    return cast_or_null<PlanOp>(symbol);
  return emitError(symbol->getLoc())
         << "'" << symbol->getName() << "' op has the name '" << name
         << "' meant for a plan";
}

FailureOr<TopologyOp> neuroshard::findTopology(ModuleOp module) {
  return findOnly<TopologyOp>(module, "write a plan on the one that is meant");
}

LogicalResult neuroshard::emitDiagnostics(Location loc,
                                          const Diagnostics &diagnostics) {
  constexpr size_t kMaxNotes = 20;
  if (diagnostics.empty())
    return emitError(loc, "unknown error");
  InFlightDiagnostic diagnostic = emitError(loc, diagnostics.front().str());
  size_t shown = std::min(diagnostics.size(), kMaxNotes);
  for (size_t i = 1; i < shown; ++i)
    diagnostic.attachNote() << diagnostics[i].str();
  if (shown < diagnostics.size())
    diagnostic.attachNote()
        << "and " << diagnostics.size() - shown << " more errors";
  return diagnostic;
}
