//===- CheckLowered.cpp - Ops that have no native lowering ----------------===//

#include "CheckLowered.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace neuroshard {

LogicalResult checkLowered(ModuleOp module) {
  // The casts around an op without a lowering are not the cause.
  WalkResult result = module.walk([&](Operation *op) {
    if (op == module || isa<UnrealizedConversionCastOp>(op) ||
        isa<LLVM::LLVMDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitOpError("has no lowering to native code");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

} // namespace neuroshard
