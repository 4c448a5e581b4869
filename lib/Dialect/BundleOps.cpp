//===- BundleOps.cpp - Values that travel between step functions ----------===//

#include "neuroshard/Dialect/NeuroShard.h"

using namespace mlir;
using namespace neuroshard::ir;

static LogicalResult verifyBundle(Operation *op, TypeRange values,
                                  ArrayRef<Type> types) {
  if (values.size() != types.size())
    return op->emitOpError("must have a value for each type that the bundle "
                           "lists, ")
           << types.size() << ", got: " << values.size();
  for (auto [index, value, type] : llvm::enumerate(values, types))
    if (value != type)
      return op->emitOpError("value ")
             << index << " must have the type that the bundle lists, " << type
             << ", got: " << value;
  return success();
}

LogicalResult SuspendOp::verify() {
  return verifyBundle(*this, getValues().getTypes(),
                      getBundle().getType().getTypes());
}

LogicalResult ResumeOp::verify() {
  return verifyBundle(*this, getValues().getTypes(),
                      getBundle().getType().getTypes());
}

LogicalResult SaveOp::verify() {
  return verifyBundle(*this, getValues().getTypes(),
                      getBundle().getType().getTypes());
}

LogicalResult RestoreOp::verify() {
  return verifyBundle(*this, getValues().getTypes(),
                      getBundle().getType().getTypes());
}

template <typename BundleOp>
static LogicalResult foldUnbundle(Value bundle,
                                  SmallVectorImpl<OpFoldResult> &results) {
  auto source = bundle.getDefiningOp<BundleOp>();
  if (!source)
    return failure();
  llvm::append_range(results, source.getValues());
  return success();
}

LogicalResult ResumeOp::fold(FoldAdaptor,
                             SmallVectorImpl<OpFoldResult> &results) {
  return foldUnbundle<SuspendOp>(getBundle(), results);
}

LogicalResult RestoreOp::fold(FoldAdaptor,
                              SmallVectorImpl<OpFoldResult> &results) {
  return foldUnbundle<SaveOp>(getBundle(), results);
}

void DiscardOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), CollectiveResource::get());
}
