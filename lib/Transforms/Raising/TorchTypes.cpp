//===- TorchTypes.cpp - Tensors of torch-mlir, by their text --------------===//

#include "TorchTypes.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

static Type elementOfTorch(MLIRContext *context, llvm::StringRef text) {
  if (text == "f32")
    return Float32Type::get(context);
  if (text == "f16")
    return Float16Type::get(context);
  if (text == "bf16")
    return BFloat16Type::get(context);
  if (text == "f64")
    return Float64Type::get(context);
  if (text == "i1")
    return IntegerType::get(context, 1);
  unsigned width = 0;
  if ((text.consume_front("si") || text.consume_front("ui")) &&
      !text.getAsInteger(10, width) && width >= 1 && width <= 64)
    return IntegerType::get(context, width);
  return {};
}

RankedTensorType neuroshard::raising::builtinOfTorch(Type type) {
  auto opaque = dyn_cast<OpaqueType>(type);
  if (!opaque || opaque.getDialectNamespace() != "torch")
    return {};
  llvm::StringRef text = opaque.getTypeData();
  if (!text.consume_front("vtensor<[") || !text.consume_back(">"))
    return {};
  auto [sizes, rest] = text.split(']');
  SmallVector<int64_t> shape;
  while (!sizes.empty()) {
    llvm::StringRef size;
    std::tie(size, sizes) = sizes.split(',');
    int64_t number = ShapedType::kDynamic;
    if (size.trim() != "?" &&
        (size.trim().getAsInteger(10, number) || number < 0))
      return {};
    shape.push_back(number);
  }
  if (!rest.consume_front(","))
    return {};
  Type element = elementOfTorch(type.getContext(), rest.trim());
  return element ? RankedTensorType::get(shape, element) : RankedTensorType();
}

bool neuroshard::raising::isTorchCast(Operation *op) {
  llvm::StringRef name = op->getName().getStringRef();
  return op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         (name == "torch_c.to_builtin_tensor" ||
          name == "torch_c.from_builtin_tensor" ||
          name == "torch.tensor_static_info_cast");
}
