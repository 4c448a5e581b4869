//===- DeviceStruct.h - Fields of structs in device memory -----*- C++ -*-===//
//
// Typed reads of the structs of RuntimeCuda/GpuKernelABI.h by their offsets in
// C, and memrefs over the arrays that they point to.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_GPU_DEVICESTRUCT_H
#define NEUROSHARD_LIB_CONVERSION_GPU_DEVICESTRUCT_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace neuroshard {

/// Marks a cast to a memref: the array does not change while the kernel runs,
/// so loads may go through the read-only cache.
inline constexpr llvm::StringLiteral kInvariantAttr = "nsg.invariant";

/// Pointers to device memory: NVVM's global address space.
mlir::LLVM::LLVMPointerType getDevicePointerType(mlir::MLIRContext *context);

/// A struct that does not change while the kernel runs.
class DeviceStruct {
public:
  DeviceStruct(mlir::ImplicitLocOpBuilder &b, mlir::Value address)
      : b(b), address(address) {}

  mlir::Value load(size_t offset, mlir::Type type);
  /// A struct that is a field of this one.
  DeviceStruct inner(size_t offset);
  mlir::Value pointer(size_t offset);
  mlir::Value i32(size_t offset);
  mlir::Value i64(size_t offset);
  /// An i64 or i32 as index.
  mlir::Value index(size_t offset);
  mlir::Value index32(size_t offset);
  /// A memref over the array that the pointer at `offset` points to.
  mlir::Value array(size_t offset, mlir::MemRefType type, bool invariant);

  mlir::Value getAddress() const { return address; }

private:
  mlir::ImplicitLocOpBuilder &b;
  mlir::Value address;
};

/// Element `number` of an array of structs of `size` bytes.
DeviceStruct structAt(mlir::ImplicitLocOpBuilder &b, mlir::Value array,
                      size_t size, mlir::Value number);

/// A memref of any length over a pointer.
mlir::Value makeArray(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer,
                      mlir::MemRefType type, bool invariant);

/// A memref type of rank 1, or of rows of `stride` elements.
mlir::MemRefType getFlatType(mlir::Type element);
mlir::MemRefType getRowsType(mlir::Type element, int64_t stride);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_GPU_DEVICESTRUCT_H
