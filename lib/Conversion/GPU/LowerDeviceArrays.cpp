//===- LowerDeviceArrays.cpp - Accesses to arrays in device memory --------===//
//
// neuroshard-lower-device-arrays: loads and stores of memrefs that stand for
// device pointers become those of the LLVM dialect.
//
//===----------------------------------------------------------------------===//

#include "DeviceStruct.h"

#include "neuroshard/Conversion/GPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_LOWERDEVICEARRAYS
#include "neuroshard/Conversion/GPU/Passes.h.inc"

/// The cast of a pointer to the memref, or null.
static UnrealizedConversionCastOp getArrayCast(Value memref) {
  auto cast = memref.getDefiningOp<UnrealizedConversionCastOp>();
  if (cast && cast.getInputs().size() == 1 &&
      isa<LLVM::LLVMPointerType>(cast.getInputs()[0].getType()))
    return cast;
  return nullptr;
}

static LogicalResult checkArray(Operation *op, Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (type && type.getLayout().isIdentity() && type.getRank() >= 1 &&
      type.getRank() <= 2 && getArrayCast(memref))
    return success();
  return op->emitOpError("must access an array of one or two dimensions that "
                         "is cast from a device pointer, got: ")
         << memref.getType();
}

static Value getElementAddress(ImplicitLocOpBuilder &b, Value memref,
                               ValueRange indices) {
  auto type = cast<MemRefType>(memref.getType());
  Value element = indices.front();
  if (type.getRank() == 2) {
    Value before = arith::MulIOp::create(
        b, element, arith::ConstantIndexOp::create(b, type.getDimSize(1)));
    element = arith::AddIOp::create(b, before, indices.back());
  }
  Value number = arith::IndexCastOp::create(b, b.getI64Type(), element);
  Value pointer = getArrayCast(memref).getInputs()[0];
  return LLVM::GEPOp::create(b, pointer.getType(), type.getElementType(),
                             pointer, ArrayRef<LLVM::GEPArg>{number});
}

static unsigned getElementSize(Value memref) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return element.getIntOrFloatBitWidth() / 8;
}

static LogicalResult lowerLoad(Operation *op, Value memref, ValueRange indices,
                               std::optional<uint64_t> alignment) {
  if (failed(checkArray(op, memref)))
    return failure();
  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto bytes =
      static_cast<unsigned>(alignment.value_or(getElementSize(memref)));
  auto load =
      LLVM::LoadOp::create(b, op->getResult(0).getType(),
                           getElementAddress(b, memref, indices), bytes,
                           /*isVolatile=*/false, /*isNonTemporal=*/false,
                           getArrayCast(memref)->hasAttr(kInvariantAttr));
  op->replaceAllUsesWith(load);
  op->erase();
  return success();
}

static LogicalResult lowerStore(vector::StoreOp op) {
  Value memref = op.getBase();
  if (failed(checkArray(op, memref)))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto bytes =
      static_cast<unsigned>(op.getAlignment().value_or(getElementSize(memref)));
  LLVM::StoreOp::create(b, op.getValueToStore(),
                        getElementAddress(b, memref, op.getIndices()), bytes);
  op.erase();
  return success();
}

static LogicalResult lowerAccess(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([](vector::LoadOp load) {
        return lowerLoad(load, load.getBase(), load.getIndices(),
                         load.getAlignment());
      })
      .Case([](memref::LoadOp load) {
        return lowerLoad(load, load.getMemRef(), load.getIndices(),
                         load.getAlignment());
      })
      .Case([](vector::StoreOp store) { return lowerStore(store); })
      .Default([](Operation *) { return success(); });
}

namespace {
struct LowerDeviceArrays : impl::LowerDeviceArraysBase<LowerDeviceArrays> {
  void runOnOperation() override {
    WalkResult walked = getOperation()->walk([](Operation *op) {
      return failed(lowerAccess(op)) ? WalkResult::interrupt()
                                     : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    getOperation()->walk([](UnrealizedConversionCastOp cast) {
      if (cast.use_empty())
        cast.erase();
    });
  }
};
} // namespace

} // namespace neuroshard
