//===- DeviceStruct.cpp - Fields of structs in device memory --------------===//

#include "DeviceStruct.h"

#include "KernelBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace neuroshard {

/// NVVM's number of the global address space.
static constexpr unsigned kGlobalSpace = 1;

LLVM::LLVMPointerType getDevicePointerType(MLIRContext *context) {
  return LLVM::LLVMPointerType::get(context, kGlobalSpace);
}

static unsigned getByteSize(Type type) {
  return isa<LLVM::LLVMPointerType>(type) ? 8
                                          : type.getIntOrFloatBitWidth() / 8;
}

DeviceStruct DeviceStruct::inner(size_t offset) {
  return DeviceStruct(
      b, LLVM::GEPOp::create(
             b, address.getType(), b.getI8Type(), address,
             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)}));
}

Value DeviceStruct::load(size_t offset, Type type) {
  Value field = inner(offset).getAddress();
  return LLVM::LoadOp::create(b, type, field, getByteSize(type),
                              /*isVolatile=*/false, /*isNonTemporal=*/false,
                              /*isInvariant=*/true);
}

Value DeviceStruct::pointer(size_t offset) {
  return load(offset, getDevicePointerType(b.getContext()));
}

Value DeviceStruct::i32(size_t offset) { return load(offset, b.getI32Type()); }

Value DeviceStruct::i64(size_t offset) { return load(offset, b.getI64Type()); }

Value DeviceStruct::index(size_t offset) {
  return arith::IndexCastOp::create(b, b.getIndexType(), i64(offset));
}

Value DeviceStruct::index32(size_t offset) {
  return arith::IndexCastOp::create(b, b.getIndexType(), i32(offset));
}

Value DeviceStruct::array(size_t offset, MemRefType type, bool invariant) {
  return makeArray(b, pointer(offset), type, invariant);
}

DeviceStruct structAt(ImplicitLocOpBuilder &b, Value array, size_t size,
                      Value number) {
  Value bytes = arith::MulIOp::create(
      b, number, arith::ConstantIndexOp::create(b, static_cast<int64_t>(size)));
  Value offset = arith::IndexCastOp::create(b, b.getI64Type(), bytes);
  Value address = LLVM::GEPOp::create(b, array.getType(), b.getI8Type(), array,
                                      ArrayRef<LLVM::GEPArg>{offset});
  return DeviceStruct(b, address);
}

Value makeArray(ImplicitLocOpBuilder &b, Value pointer, MemRefType type,
                bool invariant) {
  auto cast = UnrealizedConversionCastOp::create(b, TypeRange{type}, pointer);
  if (invariant)
    cast->setAttr(kInvariantAttr, b.getUnitAttr());
  return cast.getResult(0);
}

MemRefType getFlatType(Type element) {
  return MemRefType::get({kUnbounded}, element);
}

MemRefType getRowsType(Type element, int64_t stride) {
  return MemRefType::get({kUnbounded, stride}, element);
}

} // namespace neuroshard
