//===- Elements.cpp - Ops on each element of tensors ----------------------===//

#include "Elements.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

/// Whether the op computes each element of its result from those at the same
/// place of its operands.
static bool isElementwise(linalg::GenericOp op) {
  return op && op.getNumResults() == 1 && op.hasPureTensorSemantics() &&
         op.getNumParallelLoops() == op.getNumLoops() &&
         llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
           return !isa<ShapedType>(operand.get().getType()) ||
                  op.getMatchingIndexingMap(&operand).isIdentity();
         });
}

Value neuroshard::raising::elementsOf(Value value) {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto body =
          dyn_cast<linalg::GenericOp>(argument.getOwner()->getParentOp());
      if (!isElementwise(body))
        return value;
      value = body->getOperand(argument.getArgNumber());
      continue;
    }
    auto generic = value.getDefiningOp<linalg::GenericOp>();
    if (!isElementwise(generic))
      return value;
    value = generic.getBody()->getTerminator()->getOperand(0);
  }
}

Value neuroshard::raising::repeated(Value value) {
  if (isa<FloatType>(value.getType()))
    return value;
  if (auto splat = value.getDefiningOp<tensor::SplatOp>())
    return splat.getInput();
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return fill.getInputs()[0];
  if (auto broadcast = value.getDefiningOp<linalg::BroadcastOp>())
    if (auto single =
            broadcast.getInput().getDefiningOp<tensor::FromElementsOp>())
      return single.getElements().size() == 1 ? single.getElements()[0]
                                              : Value();
  return {};
}
