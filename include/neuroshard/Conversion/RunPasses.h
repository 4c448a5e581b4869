//===- RunPasses.h - Run passes, with a reproducer of failures --*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_RUNPASSES_H
#define NEUROSHARD_CONVERSION_RUNPASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace neuroshard {

/// Runs the passes that `addPasses` adds. If one fails or crashes, `reproducer`
/// gets the module as it was before the first, and the passes:
/// `neuroshard-opt --run-reproducer` runs them again. Empty: no such file.
inline mlir::LogicalResult
runPasses(mlir::ModuleOp module, llvm::StringRef reproducer,
          llvm::function_ref<void(mlir::OpPassManager &)> addPasses) {
  mlir::PassManager passes(module.getContext());
  addPasses(passes);
  if (!reproducer.empty())
    passes.enableCrashReproducerGeneration(reproducer);
  return passes.run(module);
}

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_RUNPASSES_H
