//===- ElementKind.cpp - Names, sizes and MLIR's types of elements --------===//
//
// The only place that tells one kind of element from another by hand.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Kernels/ElementKind.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace neuroshard {

llvm::StringRef getElementName(ElementKind element) {
  switch (element) {
  case ElementKind::F32:
    return "f32";
  case ElementKind::F16:
    return "f16";
  case ElementKind::BF16:
    return "bf16";
  }
  llvm_unreachable("unknown element");
}

Type getElementType(MLIRContext *context, ElementKind element) {
  switch (element) {
  case ElementKind::F32:
    return Float32Type::get(context);
  case ElementKind::F16:
    return Float16Type::get(context);
  case ElementKind::BF16:
    return BFloat16Type::get(context);
  }
  llvm_unreachable("unknown element");
}

int64_t getElementBytes(ElementKind element) {
  return element == ElementKind::F32 ? 4 : 2;
}

} // namespace neuroshard
