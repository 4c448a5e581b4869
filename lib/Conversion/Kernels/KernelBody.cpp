//===- KernelBody.cpp - Input defaults and index loads of kernels ---------===//

#include "KernelBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace neuroshard {

KernelInputs::~KernelInputs() = default;

void LookupInputs::forEachItems(
    int64_t, llvm::function_ref<void(ArrayRef<Value>)> emit) {
  forEachItem([&](Value item) { emit(item); });
}

Value loadIndex(ImplicitLocOpBuilder &b, Value memref, Value position) {
  Value element = memref::LoadOp::create(b, memref, position);
  return arith::IndexCastUIOp::create(b, b.getIndexType(), element);
}

} // namespace neuroshard
