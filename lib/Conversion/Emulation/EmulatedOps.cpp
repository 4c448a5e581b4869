//===- EmulatedOps.cpp - GPU ops as calls of the emulator -----------------===//
//
// One small conversion for each op; the functions called are those of
// Emulator/EmulatorABI.h.
//
//===----------------------------------------------------------------------===//

#include "Emulated.h"

#include "neuroshard/Emulator/EmulatorABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace neuroshard {

namespace {
/// Converts the ops of one module.
class OpConverter {
public:
  explicit OpConverter(ModuleOp module)
      : module(module), b(module.getLoc(), module.getContext()),
        i32(b.getI32Type()), i64(b.getI64Type()) {}

  /// Replaces `op` if it has an emulation.
  LogicalResult convert(Operation *op);

private:
  LogicalResult replace(Operation *op, ValueRange values) {
    op->replaceAllUsesWith(values);
    op->erase();
    return success();
  }
  LogicalResult erase(Operation *op) { return replace(op, {}); }

  Value call(StringRef name, Type result, ValueRange operands);
  Value constant(int64_t value, Type type) {
    return arith::ConstantOp::create(b, type, b.getIntegerAttr(type, value));
  }
  Value cast(Value number, Type type);

  /// Replaces a number or size in dimension x by a call; in y and z the number
  /// is 0 and the size 1.
  LogicalResult askNumber(Operation *op, StringRef name, gpu::Dimension dim,
                          int64_t otherwise);
  LogicalResult replaceNumber(Operation *op, StringRef name) {
    return replace(op, cast(call(name, i64, {}), op->getResultTypes()[0]));
  }
  LogicalResult globalId(gpu::GlobalIdOp op);
  LogicalResult threadPart(Operation *op, bool isLane);

  LogicalResult shuffle(gpu::ShuffleOp op);
  LogicalResult shuffle(NVVM::ShflOp op);
  /// The value and whether its lane is in the segment.
  std::pair<Value, Value> shuffle(Value mask, Value value, Value offset,
                                  Value maskAndClamp, int32_t kind);
  LogicalResult vote(NVVM::VoteSyncOp op);
  LogicalResult intrinsic(LLVM::CallIntrinsicOp op);
  LogicalResult barrier(NVVM::BarrierOp op);

  ModuleOp module;
  ImplicitLocOpBuilder b;
  Type i32, i64;
};
} // namespace

Value OpConverter::call(StringRef name, Type result, ValueRange operands) {
  SmallVector<Type> results;
  if (result)
    results.push_back(result);
  func::FuncOp callee = declareFunction(
      module, name, b.getFunctionType(operands.getTypes(), results));
  auto op = func::CallOp::create(b, callee, operands);
  return result ? op.getResult(0) : Value();
}

Value OpConverter::cast(Value number, Type type) {
  if (number.getType() == type)
    return number;
  if (type.isIndex() || number.getType().isIndex())
    return arith::IndexCastOp::create(b, type, number);
  if (type.getIntOrFloatBitWidth() < number.getType().getIntOrFloatBitWidth())
    return arith::TruncIOp::create(b, type, number);
  return arith::ExtUIOp::create(b, type, number);
}

LogicalResult OpConverter::askNumber(Operation *op, StringRef name,
                                     gpu::Dimension dim, int64_t otherwise) {
  if (dim == gpu::Dimension::x)
    return replaceNumber(op, name);
  return replace(op, constant(otherwise, op->getResultTypes()[0]));
}

LogicalResult OpConverter::globalId(gpu::GlobalIdOp op) {
  if (op.getDimension() != gpu::Dimension::x)
    return replace(op, constant(0, op.getType()));
  Value block = call("nse_block_id", i64, {});
  Value threads = call("nse_block_dim", i64, {});
  Value before = arith::MulIOp::create(b, block, threads);
  Value id = arith::AddIOp::create(b, before, call("nse_thread_id", i64, {}));
  return replace(op, cast(id, op.getType()));
}

LogicalResult OpConverter::threadPart(Operation *op, bool isLane) {
  Value thread = call("nse_thread_id", i64, {});
  Value lanes = constant(NSE_WARP, i64);
  Value part = isLane ? arith::RemUIOp::create(b, thread, lanes).getResult()
                      : arith::DivUIOp::create(b, thread, lanes).getResult();
  return replace(op, cast(part, op->getResultTypes()[0]));
}

std::pair<Value, Value> OpConverter::shuffle(Value mask, Value value,
                                             Value offset, Value maskAndClamp,
                                             int32_t kind) {
  Type type = value.getType();
  if (type != i32)
    value = arith::BitcastOp::create(b, i32, value);
  Value both = call("nse_shuffle", i64,
                    {mask, value, offset, maskAndClamp, constant(kind, i32)});
  Value read = arith::TruncIOp::create(b, i32, both);
  if (type != i32)
    read = arith::BitcastOp::create(b, type, read);
  Value valid = arith::TruncIOp::create(
      b, b.getI1Type(), arith::ShRUIOp::create(b, both, constant(32, i64)));
  return {read, valid};
}

/// gpu.shuffle is shfl.sync of the first `width` lanes (GPUToNVVM).
LogicalResult OpConverter::shuffle(gpu::ShuffleOp op) {
  if (!op.getValue().getType().isIntOrFloat() ||
      op.getValue().getType().getIntOrFloatBitWidth() != 32)
    return op.emitOpError("must shuffle values of 32 bits to be emulated");
  Value width = op.getWidth();
  Value others = arith::SubIOp::create(b, constant(NSE_WARP, i32), width);
  Value mask = arith::ShRUIOp::create(b, constant(-1, i32), others);
  Value last = arith::SubIOp::create(b, width, constant(1, i32));
  auto [kind, clamp] = [&]() -> std::pair<int32_t, Value> {
    switch (op.getMode()) {
    case gpu::ShuffleMode::XOR:
      return {NSE_SHUFFLE_BFLY, last};
    case gpu::ShuffleMode::UP:
      return {NSE_SHUFFLE_UP, others};
    case gpu::ShuffleMode::DOWN:
      return {NSE_SHUFFLE_DOWN, last};
    case gpu::ShuffleMode::IDX:
      break;
    }
    return {NSE_SHUFFLE_IDX, last};
  }();
  auto [value, valid] =
      shuffle(mask, op.getValue(), op.getOffset(), clamp, kind);
  return replace(op, {value, valid});
}

LogicalResult OpConverter::shuffle(NVVM::ShflOp op) {
  static_assert(static_cast<int>(NVVM::ShflKind::bfly) == NSE_SHUFFLE_BFLY &&
                static_cast<int>(NVVM::ShflKind::up) == NSE_SHUFFLE_UP &&
                static_cast<int>(NVVM::ShflKind::down) == NSE_SHUFFLE_DOWN &&
                static_cast<int>(NVVM::ShflKind::idx) == NSE_SHUFFLE_IDX);
  auto [value, valid] =
      shuffle(op.getThreadMask(), op.getVal(), op.getOffset(),
              op.getMaskAndClamp(), static_cast<int32_t>(op.getKind()));
  if (!op.getReturnValueAndIsValid())
    return replace(op, value);
  Value both = LLVM::UndefOp::create(b, op.getType());
  both = LLVM::InsertValueOp::create(b, both, value, ArrayRef<int64_t>{0});
  both = LLVM::InsertValueOp::create(b, both, valid, ArrayRef<int64_t>{1});
  return replace(op, both);
}

LogicalResult OpConverter::vote(NVVM::VoteSyncOp op) {
  Value predicate = arith::ExtUIOp::create(b, i32, op.getPred());
  Value lanes = call("nse_ballot", i32, {op.getMask(), predicate});
  auto compare = [&](arith::CmpIPredicate how, Value with) -> Value {
    return arith::CmpIOp::create(b, how, lanes, with);
  };
  using arith::CmpIPredicate;
  switch (op.getKind()) {
  case NVVM::VoteSyncKind::ballot:
    return replace(op, lanes);
  case NVVM::VoteSyncKind::any:
    return replace(op, compare(CmpIPredicate::ne, constant(0, i32)));
  case NVVM::VoteSyncKind::all:
    return replace(op, compare(CmpIPredicate::eq, op.getMask()));
  case NVVM::VoteSyncKind::uni:
    break;
  }
  Value none = compare(CmpIPredicate::eq, constant(0, i32));
  Value all = compare(CmpIPredicate::eq, op.getMask());
  return replace(op, arith::OrIOp::create(b, none, all).getResult());
}

/// The CPU's square root rounds correctly, too.
LogicalResult OpConverter::intrinsic(LLVM::CallIntrinsicOp op) {
  if (op.getIntrin() != "llvm.nvvm.sqrt.rn.f")
    return op.emitOpError("has no emulation on the CPU");
  return replace(op, math::SqrtOp::create(b, op.getOperand(0)).getResult());
}

LogicalResult OpConverter::barrier(NVVM::BarrierOp op) {
  if (op->getNumOperands() > 0)
    return op.emitOpError("has operands: only the barrier of all threads of a "
                          "block has an emulation");
  call("nse_barrier", {}, {});
  return erase(op);
}

LogicalResult OpConverter::convert(Operation *op) {
  b.setLoc(op->getLoc());
  b.setInsertionPoint(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](gpu::ThreadIdOp id) {
        return askNumber(op, "nse_thread_id", id.getDimension(), 0);
      })
      .Case([&](gpu::BlockIdOp id) {
        return askNumber(op, "nse_block_id", id.getDimension(), 0);
      })
      .Case([&](gpu::BlockDimOp dim) {
        return askNumber(op, "nse_block_dim", dim.getDimension(), 1);
      })
      .Case([&](gpu::GridDimOp dim) {
        return askNumber(op, "nse_grid_dim", dim.getDimension(), 1);
      })
      .Case<NVVM::ThreadIdXOp>(
          [&](auto) { return replaceNumber(op, "nse_thread_id"); })
      .Case<NVVM::BlockIdXOp>(
          [&](auto) { return replaceNumber(op, "nse_block_id"); })
      .Case<NVVM::BlockDimXOp>(
          [&](auto) { return replaceNumber(op, "nse_block_dim"); })
      .Case<NVVM::GridDimXOp>(
          [&](auto) { return replaceNumber(op, "nse_grid_dim"); })
      .Case([&](gpu::GlobalIdOp id) { return globalId(id); })
      .Case<gpu::LaneIdOp, NVVM::LaneIdOp>(
          [&](auto) { return threadPart(op, /*isLane=*/true); })
      .Case<gpu::SubgroupIdOp>(
          [&](auto) { return threadPart(op, /*isLane=*/false); })
      .Case<gpu::SubgroupSizeOp, NVVM::WarpSizeOp>([&](auto) {
        return replace(op, constant(NSE_WARP, op->getResultTypes()[0]));
      })
      .Case<gpu::ShuffleOp, NVVM::ShflOp>(
          [&](auto typed) { return shuffle(typed); })
      .Case([&](NVVM::VoteSyncOp typed) { return vote(typed); })
      .Case([&](NVVM::SyncWarpOp sync) {
        call("nse_warp_sync", {}, sync.getMask());
        return erase(op);
      })
      .Case<gpu::BarrierOp, NVVM::Barrier0Op>([&](auto) {
        call("nse_barrier", {}, {});
        return erase(op);
      })
      .Case([&](NVVM::BarrierOp typed) { return barrier(typed); })
      .Case([&](LLVM::CallIntrinsicOp typed) { return intrinsic(typed); })
      .Case<NVVM::PrefetchOp>([&](auto) { return erase(op); })
      .Default([&](Operation *) {
        return op->emitOpError("has no emulation on the CPU");
      });
}

/// True for ops that only GPUs run.
static bool isGpuOp(Operation *op) {
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return call.getIntrin().starts_with("llvm.nvvm.");
  return isa_and_nonnull<gpu::GPUDialect, NVVM::NVVMDialect>(
             op->getDialect()) ||
         isa<LLVM::InlineAsmOp>(op);
}

LogicalResult convertGpuOps(ModuleOp module) {
  // In pre-order, so that an error names an op and not those inside it.
  SmallVector<Operation *> ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isGpuOp(op))
      ops.push_back(op);
  });
  OpConverter converter(module);
  for (Operation *op : ops)
    if (failed(converter.convert(op)))
      return failure();
  return success();
}

} // namespace neuroshard
