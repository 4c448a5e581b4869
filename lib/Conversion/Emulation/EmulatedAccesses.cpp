//===- EmulatedAccesses.cpp - Accesses of emulated kernels to memory ------===//
//
// Calls nse_access before each load, store and atomic operation of the LLVM
// dialect, which is what kernels consist of. Loads and stores of memrefs are
// not reported.
//
//===----------------------------------------------------------------------===//

#include "Emulated.h"

#include "neuroshard/Emulator/EmulatorABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace neuroshard {

namespace {
struct Access {
  Value address;
  Type type;
  nse_access_kind kind = NSE_READ;
  /// Bytes; 0: natural alignment of the type.
  uint64_t alignment = 0;
};
} // namespace

/// The access of an op; without an address if it has none.
static Access getAccess(Operation *op) {
  return llvm::TypeSwitch<Operation *, Access>(op)
      .Case([](LLVM::LoadOp load) -> Access {
        return {load.getAddr(), load.getType(),
                load.getInvariant() ? NSE_READ_INVARIANT : NSE_READ,
                load.getAlignment().value_or(0)};
      })
      .Case([](LLVM::StoreOp store) -> Access {
        return {store.getAddr(), store.getValue().getType(), NSE_WRITE,
                store.getAlignment().value_or(0)};
      })
      .Case([](LLVM::AtomicRMWOp atomic) -> Access {
        return {atomic.getPtr(), atomic.getType(), NSE_ATOMIC};
      })
      .Case([](LLVM::AtomicCmpXchgOp atomic) -> Access {
        return {atomic.getPtr(), atomic.getVal().getType(), NSE_ATOMIC};
      })
      .Default([](Operation *) { return Access(); });
}

func::FuncOp declareFunction(ModuleOp module, StringRef name,
                             FunctionType type) {
  if (auto known = module.lookupSymbol<func::FuncOp>(name))
    return known;
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto func = func::FuncOp::create(b, module.getLoc(), name, type);
  func.setPrivate();
  return func;
}

void reportAccesses(ModuleOp module) {
  DataLayout layout(module);
  module.walk([&](Operation *op) {
    Access access = getAccess(op);
    if (!access.address)
      return;
    ImplicitLocOpBuilder b(op->getLoc(), op);
    auto bytes =
        static_cast<int64_t>(layout.getTypeSize(access.type).getFixedValue());
    uint64_t alignment = access.alignment
                             ? access.alignment
                             : llvm::bit_ceil(static_cast<uint64_t>(bytes));
    int32_t kind = access.kind | static_cast<int32_t>(llvm::Log2_64(alignment))
                                     << NSE_ALIGNMENT_SHIFT;
    Value operands[] = {
        access.address,
        arith::ConstantOp::create(b, b.getI64IntegerAttr(bytes)),
        arith::ConstantOp::create(b, b.getI32IntegerAttr(kind))};
    auto type = b.getFunctionType(ValueRange(operands).getTypes(), {});
    func::CallOp::create(b, declareFunction(module, "nse_access", type),
                         operands);
  });
}

} // namespace neuroshard
