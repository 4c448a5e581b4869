//===- Bundles.cpp - Change what pending and context values hold ----------===//

#include "Bundles.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

/// Bundles are passed between functions only, so that signatures and calls
/// are all there is to change.
static void replaceType(ModuleOp module, Type from, Type to) {
  auto replace = [&](Value value) {
    if (value.getType() == from)
      value.setType(to);
  };
  module.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), replace);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), replace);
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function)
      return;
    SmallVector<Type> inputs(function.getArgumentTypes());
    SmallVector<Type> results(function.getResultTypes());
    llvm::replace(inputs, from, to);
    llvm::replace(results, from, to);
    function.setFunctionType(
        FunctionType::get(module.getContext(), inputs, results));
  });
}

template <typename OpT> void neuroshard::rebundle(OpT op, ValueRange values) {
  auto from = op.getBundle().getType();
  auto to = decltype(from)::get(op.getContext(),
                                SmallVector<Type>(values.getTypes()));
  op.getValuesMutable().assign(values);
  replaceType(op->template getParentOfType<ModuleOp>(), from, to);
}

template <typename OpT> OpT neuroshard::recreateUnbundle(OpT op) {
  OpBuilder builder(op);
  return OpT::create(builder, op.getLoc(), op.getBundle().getType().getTypes(),
                     op.getBundle());
}

template void neuroshard::rebundle(SuspendOp, ValueRange);
template void neuroshard::rebundle(SaveOp, ValueRange);
template ResumeOp neuroshard::recreateUnbundle(ResumeOp);
template RestoreOp neuroshard::recreateUnbundle(RestoreOp);
