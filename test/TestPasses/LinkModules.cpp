//===- LinkModules.cpp - Pass that puts the modules of a module together --===//

#include "Passes.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/IR/SymbolTable.h"

namespace neuroshard {
#define GEN_PASS_DEF_LINKMODULES
#include "Passes.h.inc"
} // namespace neuroshard

using namespace mlir;

namespace {

struct LinkModulesPass
    : public neuroshard::impl::LinkModulesBase<LinkModulesPass> {
  using LinkModulesBase::LinkModulesBase;

  LogicalResult link(ModuleOp part) {
    SymbolTable partSymbols(part);
    SymbolTable symbols(getOperation());
    SmallVector<Operation *> ops;
    for (Operation &op : *part.getBody()) {
      ops.push_back(&op);
      auto symbol = dyn_cast<SymbolOpInterface>(op);
      if (symbol && symbols.lookup(symbol.getNameAttr()) &&
          failed(partSymbols.renameToUnique(&op, {&symbols})))
        return op.emitError("cannot be renamed");
    }
    for (Operation *op : ops)
      op->moveBefore(part);
    part.erase();
    return success();
  }

  void runOnOperation() override {
    for (ModuleOp part :
         llvm::make_early_inc_range(getOperation().getOps<ModuleOp>()))
      if (failed(link(part)))
        return signalPassFailure();
  }
};

} // namespace
