//===- SeparateResults.cpp - Callers free each result by itself -----------===//

#include "neuroshard/Conversion/Native/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_SEPARATERESULTS
#include "neuroshard/Conversion/Native/Passes.h.inc"

/// The value that `value` is a view of.
static Value rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
             tensor::ExtractSliceOp, tensor::ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The result of a branch, a loop or a select may be the buffer of any operand.
static bool maySelect(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (op->getNumRegions() > 0 || isa<SelectLikeOpInterface>(op));
}

static void separateResults(func::ReturnOp returnOp) {
  OpBuilder builder(returnOp);
  llvm::SmallPtrSet<Value, 8> roots;
  for (OpOperand &operand : returnOp->getOpOperands()) {
    Value value = operand.get();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      continue;
    Value root = rootOf(value);
    if (roots.insert(root).second && !maySelect(root))
      continue;
    operand.set(bufferization::AllocTensorOp::create(
        builder, returnOp.getLoc(), type, ValueRange(), value));
  }
}

namespace {
struct SeparateResults : impl::SeparateResultsBase<SeparateResults> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func.isPublic() || func.getNumResults() < 2)
      return;
    func.walk([](func::ReturnOp returnOp) { separateResults(returnOp); });
  }
};
} // namespace

} // namespace neuroshard
