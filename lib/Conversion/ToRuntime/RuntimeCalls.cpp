//===- RuntimeCalls.cpp - Calls of nsrt_* functions -----------------------===//

#include "RuntimeCalls.h"

#include "neuroshard/Runtime/KernelABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace neuroshard {

Type RuntimeBuilder::pointerType() {
  return LLVM::LLVMPointerType::get(getContext());
}

Value RuntimeBuilder::null() {
  return LLVM::ZeroOp::create(*this, pointerType());
}

Value RuntimeBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}

Value RuntimeBuilder::i32(int64_t value) {
  return arith::ConstantOp::create(
      *this, getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value RuntimeBuilder::asI64(Value index) {
  return arith::IndexCastOp::create(*this, getI64Type(), index);
}

Value RuntimeBuilder::allocateTensor(MemRefType type, ValueRange sizes) {
  return memref::AllocOp::create(*this, type, sizes,
                                 getI64IntegerAttr(NSRT_TENSOR_ALIGNMENT));
}

Value RuntimeBuilder::call(StringRef name, ValueRange arguments, Type result) {
  auto module = getInsertionBlock()->getParent()->getParentOfType<ModuleOp>();
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function) {
    InsertionGuard guard(*this);
    setInsertionPointToEnd(module.getBody());
    auto type = getFunctionType(arguments.getTypes(),
                                result ? TypeRange(result) : TypeRange());
    function = func::FuncOp::create(*this, name, type);
    function.setPrivate();
  }
  auto call = func::CallOp::create(*this, function, arguments);
  return result ? call.getResult(0) : Value();
}

Value RuntimeBuilder::pointerTo(Value memref, int64_t element) {
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(*this, memref);
  Value first = LLVM::IntToPtrOp::create(*this, pointerType(), asI64(address));
  if (element == 0)
    return first;
  return LLVM::GEPOp::create(
      *this, pointerType(), cast<MemRefType>(memref.getType()).getElementType(),
      first, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(element)});
}

Value RuntimeBuilder::readPointer(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Value memref = bufferization::ToBufferOp::create(
      *this, MemRefType::get(type.getShape(), type.getElementType()), tensor,
      /*read_only=*/true);
  return pointerTo(memref);
}

bool isCallersTensor(Value tensor) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  if (!function || !function.isPublic() || !argument.getOwner()->isEntryBlock())
    return false;
  auto isWritable = function.getArgAttrOfType<BoolAttr>(
      argument.getArgNumber(),
      bufferization::BufferizationDialect::kWritableAttrName);
  return !isWritable || !isWritable.getValue();
}

/// Rows of any distance.
static MemRefLayoutAttrInterface getRowsLayout(MLIRContext *context) {
  return StridedLayoutAttr::get(context, 0, {ShapedType::kDynamic, 1});
}

RowsPointer RuntimeBuilder::readRows(Value tensor) {
  if (!isCallersTensor(tensor))
    return {readPointer(tensor),
            index(cast<RankedTensorType>(tensor.getType()).getDimSize(1))};
  auto type = cast<RankedTensorType>(tensor.getType());
  Value memref = bufferization::ToBufferOp::create(
      *this,
      MemRefType::get(type.getShape(), type.getElementType(),
                      getRowsLayout(getContext())),
      tensor, /*read_only=*/true);
  auto metadata = memref::ExtractStridedMetadataOp::create(*this, memref);
  return {pointerTo(memref), metadata.getStrides().front()};
}

void layOutArguments(func::FuncOp function) {
  MemRefLayoutAttrInterface rows = getRowsLayout(function.getContext());
  for (BlockArgument argument :
       function.isExternal() ? ArrayRef<BlockArgument>()
                             : ArrayRef<BlockArgument>(function.getArguments()))
    for (Operation *user : argument.getUsers())
      if (auto buffer = dyn_cast<bufferization::ToBufferOp>(user))
        if (cast<MemRefType>(buffer.getType()).getLayout() == rows)
          function.setArgAttr(
              argument.getArgNumber(),
              bufferization::BufferizationDialect::kBufferLayoutAttrName, rows);
}

Value RuntimeBuilder::arrayOf(ValueRange values) {
  Type element = values.empty() ? pointerType() : values.front().getType();
  Value array =
      LLVM::AllocaOp::create(*this, pointerType(), element, i64(values.size()));
  for (auto [i, value] : llvm::enumerate(values)) {
    Value address =
        LLVM::GEPOp::create(*this, pointerType(), element, array,
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    LLVM::StoreOp::create(*this, value, address);
  }
  return array;
}

int64_t getElementCode(Type element) {
  if (element.isF16())
    return 1;
  return element.isBF16() ? 2 : 0;
}

} // namespace neuroshard
