//===- KeepEntry.cpp - Erase functions that are not the entry -------------===//

#include "neuroshard/Transforms/KeepEntry.h"

#include "neuroshard/Dialect/CheckedOptions.h"
#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Support/OptionText.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace neuroshard {
#define GEN_PASS_DEF_KEEPENTRY
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

namespace {

struct KeepEntry : CheckedOptions<neuroshard::impl::KeepEntryBase<KeepEntry>> {
  using CheckedOptions::CheckedOptions;

  void runOnOperation() override {
    if (!entry.empty() && failed(keepEntry(getOperation(), entry)))
      signalPassFailure();
  }
};

} // namespace

bool neuroshard::hasLookup(func::FuncOp function) {
  return function.walk([](LookupOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

LogicalResult neuroshard::keepEntry(ModuleOp module, llvm::StringRef entry) {
  entry = symbolOption(entry);
  auto kept = module.lookupSymbol<func::FuncOp>(entry);
  if (!kept || kept.isExternal())
    return emitError(module.getLoc(), "the module has no function '@")
           << printable(entry) << "' with a body (option 'entry')";
  llvm::SmallSetVector<func::FuncOp, 4> others;
  for (auto function : module.getOps<func::FuncOp>())
    if (function != kept && hasLookup(function))
      others.insert(function);
  for (func::FuncOp function : others) {
    auto uses = SymbolTable::getSymbolUses(function.getSymNameAttr(), module);
    if (!uses)
      continue;
    for (const SymbolTable::SymbolUse &use : *uses) {
      Operation *user = use.getUser();
      auto caller = user->getParentOfType<func::FuncOp>();
      if (caller && others.contains(caller))
        continue;
      InFlightDiagnostic diagnostic =
          function.emitError("'@")
          << printable(function.getSymName())
          << "' has lookups and is not the entry '@" << printable(entry)
          << "', but is used by what stays; inline it "
             "first: --inline";
      diagnostic.attachNote(user->getLoc()) << "it is used here";
      return diagnostic;
    }
  }
  for (func::FuncOp function : others)
    function.erase();
  return success();
}
