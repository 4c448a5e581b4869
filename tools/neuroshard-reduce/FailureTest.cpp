//===- FailureTest.cpp - Whether a module still fails ---------------------===//

#include "FailureTest.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace neuroshard;

namespace {

/// Collects the ops that a rewriter erases.
struct Erasures : RewriterBase::Listener {
  explicit Erasures(llvm::DenseSet<Operation *> &erased) : erased(erased) {}
  void notifyOperationErased(Operation *op) override { erased.insert(op); }

  llvm::DenseSet<Operation *> &erased;
};

} // namespace

Trial::Trial(ModuleOp module, const ModuleEdit &edit,
             llvm::ArrayRef<Operation *> ops)
    : copy(cast<ModuleOp>(module->clone(mapping))) {
  Erasures listener(erased);
  IRRewriter rewriter(copy->getContext(), &listener);
  for (Operation *op : ops) {
    Operation *other = copyOf(op);
    if (other && edit.apply(other, rewriter))
      applied.push_back(op);
  }
}

Operation *Trial::copyOf(Operation *op) const {
  Operation *other = mapping.lookupOrNull(op);
  return other && !erased.contains(other) ? other : nullptr;
}

bool FailureTest::stillFails(ModuleOp module) {
  // The verifier's errors say what an edit has broken.
  ScopedDiagnosticHandler silent(module.getContext(),
                                 [](mlir::Diagnostic &) { return success(); });
  if (failed(verify(module)))
    return false;
  std::string text;
  // With aliases of long types, which << has not.
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  if (failing.contains(text) || passing.contains(text))
    return failing.contains(text);
  ++programRuns;
  bool fails =
      tester.isInteresting(module).first == Tester::Interestingness::True;
  (fails ? failing : passing).insert(text);
  return fails;
}
