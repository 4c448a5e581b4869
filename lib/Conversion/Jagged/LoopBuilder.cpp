//===- LoopBuilder.cpp - Plain loops over buffers -------------------------===//

#include "neuroshard/Conversion/Jagged/LoopBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace neuroshard {

Value LoopBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}

Value LoopBuilder::f32(double value) {
  return arith::ConstantOp::create(*this,
                                   getF32FloatAttr(static_cast<float>(value)));
}

Value LoopBuilder::add(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::AddFOp::create(*this, a, b);
  return arith::AddIOp::create(*this, a, b);
}

Value LoopBuilder::sub(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::SubFOp::create(*this, a, b);
  return arith::SubIOp::create(*this, a, b);
}

Value LoopBuilder::mul(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::MulFOp::create(*this, a, b);
  return arith::MulIOp::create(*this, a, b);
}

Value LoopBuilder::div(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::DivFOp::create(*this, a, b);
  return arith::DivUIOp::create(*this, a, b);
}

Value LoopBuilder::size(Value shaped) {
  if (isa<TensorType>(shaped.getType()))
    return tensor::DimOp::create(*this, shaped, int64_t{0});
  return memref::DimOp::create(*this, shaped, int64_t{0});
}

Value LoopBuilder::load(Value from, ValueRange indices) {
  Value element;
  if (isa<TensorType>(from.getType()))
    element = tensor::ExtractOp::create(*this, from, indices);
  else
    element = memref::LoadOp::create(*this, from, indices);
  if (isa<IntegerType>(element.getType()))
    return arith::IndexCastOp::create(*this, getIndexType(), element);
  return element;
}

void LoopBuilder::store(Value value, Value memref, ValueRange indices) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  if (isa<IndexType>(value.getType()) && isa<IntegerType>(element))
    value = arith::IndexCastOp::create(*this, element, value);
  memref::StoreOp::create(*this, value, memref, indices);
}

Value LoopBuilder::allocate(Type element, Value rows,
                            std::optional<int64_t> columns) {
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  if (columns)
    shape.push_back(*columns);
  return memref::AllocOp::create(*this, MemRefType::get(shape, element),
                                 ValueRange(rows));
}

Value LoopBuilder::toTensor(Value buffer, RankedTensorType type) {
  auto memref = cast<MemRefType>(buffer.getType());
  Value tensor = bufferization::ToTensorOp::create(
      *this, RankedTensorType::get(memref.getShape(), memref.getElementType()),
      buffer,
      /*restrict=*/true, /*writable=*/true);
  if (tensor.getType() == type)
    return tensor;
  return tensor::CastOp::create(*this, type, tensor);
}

void LoopBuilder::loop(Value begin, Value end,
                       llvm::function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(*this, begin, end, index(1));
  InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Value LoopBuilder::fold(Value begin, Value end, Value initial,
                        llvm::function_ref<Value(Value, Value)> body) {
  auto loop = scf::ForOp::create(*this, begin, end, index(1), initial);
  InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  Value next = body(loop.getInductionVar(), loop.getRegionIterArg(0));
  scf::YieldOp::create(*this, next);
  return loop.getResult(0);
}

void LoopBuilder::when(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  body();
}

} // namespace neuroshard
