//===- ExactMath.cpp - Square roots that round correctly ------------------===//

#include "neuroshard/Conversion/GPU/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_EXACTMATH
#include "neuroshard/Conversion/GPU/Passes.h.inc"

static Value takeRoot(ImplicitLocOpBuilder &b, Value value) {
  return LLVM::CallIntrinsicOp::create(b, value.getType(),
                                       b.getStringAttr("llvm.nvvm.sqrt.rn.f"),
                                       ValueRange{value})
      ->getResult(0);
}

static LogicalResult replace(math::SqrtOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value operand = op.getOperand(), result = operand;
  auto type = dyn_cast<VectorType>(operand.getType());
  if (!getElementTypeOrSelf(operand.getType()).isF32() ||
      (type && type.getRank() != 1))
    return op.emitOpError("expected f32 or a one-dimensional vector of f32");
  if (!type) {
    result = takeRoot(b, operand);
  } else {
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      Value element = vector::ExtractOp::create(b, operand, i);
      result = vector::InsertOp::create(b, takeRoot(b, element), result, i);
    }
  }
  op.replaceAllUsesWith(result);
  op.erase();
  return success();
}

namespace {
struct ExactMath : impl::ExactMathBase<ExactMath> {
  void runOnOperation() override {
    WalkResult walked = getOperation()->walk([](math::SqrtOp op) {
      return failed(replace(op)) ? WalkResult::interrupt()
                                 : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

} // namespace neuroshard
