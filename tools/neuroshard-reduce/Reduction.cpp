//===- Reduction.cpp - Pass: make a failing module smaller ----------------===//

#include "Reduction.h"

#include "FailureTest.h"

#include "neuroshard/Dialect/CheckedOptions.h"
#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Support/Printable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FileSystem.h"

namespace neuroshard {
#define GEN_PASS_DEF_REDUCTION
#include "Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;

namespace {

/// Finds a small module that fails, from one that does.
class Reducer {
public:
  Reducer(ModuleOp module, FailureTest &test)
      : smallest(module.clone()), test(test) {}

  /// Until no edit of any op keeps the failure.
  void run() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (const ModuleEdit &edit : allEdits())
        while (minimize(edit)) {
          changed = true;
          if (!edit.repeats)
            break;
        }
    }
  }

  ModuleOp module() { return *smallest; }

private:
  using Ops = SmallVector<Operation *>;

  bool minimize(const ModuleEdit &edit);
  bool tryEdit(const ModuleEdit &edit, size_t begin, size_t count);

  OwningOpRef<ModuleOp> smallest;
  FailureTest &test;
  /// The ops of `smallest` that an edit is still to be tried on.
  Ops candidates;
};

/// Takes the module in which the candidates from `begin` on are edited if it
/// fails; they are no candidates then.
bool Reducer::tryEdit(const ModuleEdit &edit, size_t begin, size_t count) {
  Trial trial(*smallest, edit, ArrayRef(candidates).slice(begin, count));
  if (trial.changed().empty() || !test.stillFails(trial.module()))
    return false;
  Ops left;
  for (auto [index, op] : llvm::enumerate(candidates))
    if (index < begin || index >= begin + count)
      if (Operation *copy = trial.copyOf(op))
        left.push_back(copy);
  candidates = std::move(left);
  smallest = trial.takeModule();
  return true;
}

/// Edits all ops at once, then halves of them, and so on to single ops.
bool Reducer::minimize(const ModuleEdit &edit) {
  Ops all;
  smallest->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { all.push_back(op); });
  candidates = Ops(Trial(*smallest, edit, all).changed());
  bool changed = false;
  for (size_t size = candidates.size(); size > 0; size /= 2)
    for (size_t begin = 0; begin < candidates.size();) {
      size_t count = std::min(size, candidates.size() - begin);
      if (tryEdit(edit, begin, count))
        changed = true;
      else
        begin += count;
    }
  return changed;
}

size_t countTables(ModuleOp module) {
  return llvm::count_if(module.getOps<ir::TableOp>(),
                        [](ir::TableOp) { return true; });
}

/// Of all, with those inside of others.
size_t countOps(ModuleOp module) {
  size_t count = 0;
  module.walk([&](Operation *) { ++count; });
  return count;
}

struct ReductionPass
    : public CheckedOptions<neuroshard::impl::ReductionBase<ReductionPass>> {
  using CheckedOptions::CheckedOptions;

  LogicalResult reduce() {
    ModuleOp module = getOperation();
    size_t tables = countTables(module), ops = countOps(module);
    if (!llvm::sys::fs::can_execute(test))
      return emitError(module.getLoc(), "option 'test' must be a program, "
                                        "got: '")
             << printable(test.getValue()) << "'";
    Tester tester(test, {});
    FailureTest failureTest(tester);
    if (!failureTest.stillFails(module))
      return emitError(module.getLoc(),
                       "the module does not fail: the test exits with 0 for "
                       "it, or the command has not printed the text of "
                       "--error, has not crashed, or took too long");
    Reducer reducer(module, failureTest);
    reducer.run();
    module.getBodyRegion().takeBody(reducer.module().getBodyRegion());
    module->setAttrs(reducer.module()->getAttrDictionary());
    emitRemark(module.getLoc())
        << "kept " << countTables(module) << " of " << tables << " tables and "
        << countOps(module) << " of " << ops << " ops, with "
        << failureTest.runs() << " runs of the test";
    return success();
  }

  void runOnOperation() override {
    if (failed(reduce()))
      signalPassFailure();
  }
};

} // namespace
