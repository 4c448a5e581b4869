//===- CapRows.cpp - Give tables at most so many rows ---------------------===//

#include "Passes.h"

namespace laptop {

#define GEN_PASS_DEF_CAPROWS
#include "Passes.h.inc"

namespace {

struct CapRows : impl::CapRowsBase<CapRows> {
  using CapRowsBase::CapRowsBase;

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    if (rows < 1) {
      module.emitError("cap-rows: rows must be at least 1, got: ") << rows;
      return signalPassFailure();
    }
    for (auto plan : module.getOps<neuroshard::ir::PlanOp>()) {
      plan.emitError(
          "cap-rows: the module has a plan; expected one without, to be "
          "planned after the tables have shrunk");
      return signalPassFailure();
    }
    for (auto table : module.getOps<neuroshard::ir::TableOp>()) {
      if (table.getRows() <= rows)
        continue;
      table.setRows(rows);
      table.removeAccessAttr();
      ++numCapped;
    }
  }
};

} // namespace
} // namespace laptop
