//===- TouchesTensors.cpp - Host code that works on tensors ---------------===//

#include "TouchesTensors.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace neuroshard {

static bool isTensor(Type type) {
  return isa<ShapedType, ir::JaggedType, ir::ContextType, ir::PendingType>(
      type);
}

/// Whether the op only passes tensors on, or asks for their sizes.
static bool passesTensors(Operation *op) {
  if (auto keyed = dyn_cast<ir::FromKeyedOp>(op))
    return cast<ShapedType>(keyed.getOffsets().getType())
        .getElementType()
        .isInteger(64);
  return isa<ir::RouteOp, ir::RunLookupOp, ir::ExchangeResultsOp,
             ir::ExchangeJoinedResultsOp, ir::ExchangeGradientsOp,
             ir::RunWeightsGradientOp, ir::RunUpdateOp, ir::ReleaseOp,
             ir::SuspendOp, ir::ResumeOp, ir::SaveOp, ir::RestoreOp,
             ir::DiscardOp, ir::BatchSizeOp, func::CallOp, func::ReturnOp,
             tensor::CastOp, tensor::DimOp>(op);
}

namespace {
class TensorSearch {
public:
  bool touches(func::FuncOp function) {
    if (!seen.insert(function).second)
      return false;
    return function
        .walk([&](Operation *op) {
          return touches(op) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

private:
  bool touches(Operation *op) {
    if (isa<func::FuncOp>(op))
      return false;
    if (auto call = dyn_cast<func::CallOp>(op)) {
      auto module = op->getParentOfType<ModuleOp>();
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (callee && !callee.isExternal() && touches(callee))
        return true;
    }
    return !passesTensors(op) &&
           (llvm::any_of(op->getOperandTypes(), isTensor) ||
            llvm::any_of(op->getResultTypes(), isTensor));
  }

  llvm::SmallPtrSet<Operation *, 8> seen;
};
} // namespace

bool touchesTensors(func::FuncOp function) {
  return TensorSearch().touches(function);
}

} // namespace neuroshard
