//===- CopyResults.cpp - Results of a device's functions ------------------===//

#include "CopyResults.h"

#include "RuntimeCalls.h"

#include "neuroshard/Conversion/Native/Pipeline.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace neuroshard {

/// The argument of `function` that is its device; null if there is none.
static Value deviceOf(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), kDeviceArgumentAttr))
      return argument;
  return {};
}

static Value copy(RuntimeBuilder &b, Value device, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<Value> sizes;
  Value bytes = b.index((type.getElementTypeBitWidth() + 7) / 8);
  for (int64_t i = 0; i < type.getRank(); ++i) {
    Value size = tensor::DimOp::create(b, tensor, i);
    if (type.isDynamicDim(i))
      sizes.push_back(size);
    bytes = b.mul(bytes, size);
  }
  Value buffer = b.allocateTensor(
      MemRefType::get(type.getShape(), type.getElementType()), sizes);
  b.call("nsrt_tensor_copy",
         {device, b.pointerTo(buffer), b.readPointer(tensor), b.asI64(bytes)});
  return b.toTensor(buffer, type);
}

void copyResults(func::FuncOp function) {
  Value device = function.isExternal() || !function.isPublic()
                     ? Value()
                     : deviceOf(function);
  if (!device)
    return;
  function.walk([&](func::ReturnOp returnOp) {
    RuntimeBuilder b(returnOp.getLoc(), returnOp);
    llvm::SmallPtrSet<Value, 8> returned;
    for (OpOperand &operand : returnOp->getOpOperands()) {
      Value value = operand.get();
      if (!isa<RankedTensorType>(value.getType()))
        continue;
      Value tensor = value;
      while (auto cast = tensor.getDefiningOp<tensor::CastOp>())
        tensor = cast.getSource();
      if (!returned.insert(tensor).second || isa<BlockArgument>(tensor))
        operand.set(copy(b, device, value));
    }
  });
}

} // namespace neuroshard
