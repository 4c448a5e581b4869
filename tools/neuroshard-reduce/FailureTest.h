//===- FailureTest.h - Whether a module still fails ------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_REDUCE_FAILURETEST_H
#define NEUROSHARD_TOOLS_REDUCE_FAILURETEST_H

#include "Edits.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Reducer/Tester.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

namespace neuroshard {

/// A copy of a module with an edit of some of its ops.
class Trial {
public:
  /// `ops` are those of `module`. An op that an edit before has erased is left
  /// out.
  Trial(mlir::ModuleOp module, const ModuleEdit &edit,
        llvm::ArrayRef<mlir::Operation *> ops);

  /// The ops that the edit has changed.
  llvm::ArrayRef<mlir::Operation *> changed() const { return applied; }
  mlir::ModuleOp module() { return *copy; }
  mlir::OwningOpRef<mlir::ModuleOp> takeModule() { return std::move(copy); }
  /// The op of the copy for one of the module; null if it was erased.
  mlir::Operation *copyOf(mlir::Operation *op) const;

private:
  /// From the ops of the module to those of `copy`.
  mlir::IRMapping mapping;
  mlir::OwningOpRef<mlir::ModuleOp> copy;
  llvm::SmallVector<mlir::Operation *> applied;
  llvm::DenseSet<mlir::Operation *> erased;
};

/// Asks a test program, as MLIR's Tester, but for each text once.
class FailureTest {
public:
  /// `tester` must outlive this.
  explicit FailureTest(const mlir::Tester &tester) : tester(tester) {}

  /// False for a module that does not verify.
  bool stillFails(mlir::ModuleOp module);

  /// The number of times that the program ran.
  size_t runs() const { return programRuns; }

private:
  const mlir::Tester &tester;
  llvm::StringSet<> failing, passing;
  size_t programRuns = 0;
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_REDUCE_FAILURETEST_H
