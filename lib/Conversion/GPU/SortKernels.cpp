//===- SortKernels.cpp - What comes before and after the sort -------------===//
//
// nsg_expand gives every id a key, the place of its gradient and a factor;
// nsg_ranges finds where each slot's runs begin.
//
//===----------------------------------------------------------------------===//

#include "DeviceStruct.h"
#include "GpuKernels.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstddef>

using namespace mlir;

namespace neuroshard {

/// Threads that share the ids of a bag.
static constexpr int64_t kThreadsPerItem = NSG_THREADS / NSG_EXPAND_ITEMS;

/// Emits two ways to a value.
static Value choose(ImplicitLocOpBuilder &b, Value condition, Type type,
                    llvm::function_ref<Value()> then,
                    llvm::function_ref<Value()> otherwise) {
  auto branch = scf::IfOp::create(b, TypeRange{type}, condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, then());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, otherwise());
  return branch.getResult(0);
}

void emitIf(ImplicitLocOpBuilder &b, Value condition,
            llvm::function_ref<void()> emit) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emit();
}

/// Address of element `number`, an index.
static Value elementAt(ImplicitLocOpBuilder &b, Value array, Type element,
                       Value number) {
  Value i64 = arith::IndexCastOp::create(b, b.getI64Type(), number);
  return LLVM::GEPOp::create(b, array.getType(), element, array,
                             ArrayRef<LLVM::GEPArg>{i64});
}

static Value toIndex(ImplicitLocOpBuilder &b, Value value) {
  return arith::IndexCastOp::create(b, b.getIndexType(), value);
}

static Value isFourBytes(ImplicitLocOpBuilder &b, Value bytes) {
  Value four = arith::ConstantOp::create(b, b.getI32IntegerAttr(4));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bytes, four);
}

static Value isNull(ImplicitLocOpBuilder &b, Value pointer) {
  Value null = LLVM::ZeroOp::create(b, pointer.getType());
  return LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, pointer, null);
}

//===----------------------------------------------------------------------===//
// nsg_expand
//===----------------------------------------------------------------------===//

Value hasFlag(ImplicitLocOpBuilder &b, DeviceStruct task, int32_t flag) {
  Value flags = task.i32(offsetof(nsg_lookup_task, flags));
  Value bit = arith::ConstantOp::create(b, b.getI32IntegerAttr(flag));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                               arith::AndIOp::create(b, flags, bit), bit);
}

Value getIdBegin(KernelBuilder &k, DeviceStruct task, Value item) {
  ImplicitLocOpBuilder &b = k.b;
  Type index = b.getIndexType();
  Value firstId = task.index(offsetof(nsg_lookup_task, first_id));
  auto afterFirst = [&](Value ids) -> Value {
    return arith::AddIOp::create(b, firstId, ids);
  };
  auto ofBag = [&]() -> Value {
    return choose(
        b, hasFlag(b, task, NSG_FIXED), index,
        [&]() -> Value {
          Value pooling = task.index(offsetof(nsg_lookup_task, pooling));
          return afterFirst(arith::MulIOp::create(b, item, pooling));
        },
        [&]() -> Value {
          Value offsets = task.pointer(offsetof(nsg_lookup_task, offsets));
          return structAt(b, offsets, sizeof(int64_t), item).index(0);
        });
  };
  // Item i of ids that are not pooled is the task's i-th id.
  return choose(b, hasFlag(b, task, NSG_POOLED), index, ofBag,
                [&] { return afterFirst(item); });
}

namespace {
class ExpandBuilder {
public:
  explicit ExpandBuilder(KernelBuilder &k, const DeviceStruct &task)
      : k(k), b(k.b), task(task), positions(k.b, k.argument(2)) {}

  void run(Value item, Value firstThread);

private:
  Value hasFlag(int32_t flag) { return neuroshard::hasFlag(b, task, flag); }
  Value loadId(Value position);
  std::pair<Value, Value> getIds(Value item);
  void writeKey(Value position, Value id);
  void writeFactor(Value position, Value id, Value count);

  KernelBuilder &k;
  ImplicitLocOpBuilder &b;
  DeviceStruct task, positions;
};
} // namespace

/// The positions of an item's ids: one if the lookup is not pooled.
std::pair<Value, Value> ExpandBuilder::getIds(Value item) {
  Value next = arith::AddIOp::create(b, item, k.constant(1));
  return {getIdBegin(k, task, item), getIdBegin(k, task, next)};
}

Value ExpandBuilder::loadId(Value position) {
  Value ids = task.pointer(offsetof(nsg_lookup_task, ids));
  return choose(
      b, hasFlag(NSG_ID64), b.getI64Type(),
      [&] { return structAt(b, ids, sizeof(int64_t), position).i64(0); },
      [&]() -> Value {
        Value id = structAt(b, ids, sizeof(int32_t), position).i32(0);
        return arith::ExtSIOp::create(b, b.getI64Type(), id);
      });
}

/// A bad id gets a key that no row has: nothing is updated for it.
void ExpandBuilder::writeKey(Value position, Value id) {
  Value row = arith::SubIOp::create(
      b, id, task.i64(offsetof(nsg_lookup_task, row_begin)));
  Value isGood =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, row,
                            task.i64(offsetof(nsg_lookup_task, rows)));
  Value key = arith::AddIOp::create(
      b, row, task.i64(offsetof(nsg_lookup_task, key_begin)));
  Value none = arith::ConstantOp::create(b, b.getI64IntegerAttr(-1));
  key = arith::SelectOp::create(b, isGood, key, none);
  Value keys = positions.pointer(offsetof(nsg_positions, keys));
  Value isShort =
      isFourBytes(b, positions.i32(offsetof(nsg_positions, key_bytes)));
  emitIf(b, isShort, [&] {
    Value low = arith::TruncIOp::create(b, b.getI32Type(), key);
    LLVM::StoreOp::create(b, low, elementAt(b, keys, b.getI32Type(), position),
                          /*alignment=*/4);
  });
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  emitIf(b, arith::XOrIOp::create(b, isShort, yes), [&] {
    LLVM::StoreOp::create(b, key, elementAt(b, keys, b.getI64Type(), position),
                          /*alignment=*/8);
  });
}

void ExpandBuilder::writeFactor(Value position, Value id, Value count) {
  Value factors = positions.pointer(offsetof(nsg_positions, factors));
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value isWanted = arith::XOrIOp::create(b, isNull(b, factors), yes);
  emitIf(b, isWanted, [&] {
    Type f32 = b.getF32Type();
    Value one = arith::ConstantOp::create(b, b.getF32FloatAttr(1));
    Value weight = choose(
        b, hasFlag(NSG_WEIGHTED), f32,
        [&] {
          Value weights =
              task.pointer(offsetof(nsg_lookup_task, sample_weights));
          return structAt(b, weights, sizeof(float), id).load(0, f32);
        },
        [&] { return one; });
    Value integer = arith::IndexCastOp::create(b, b.getI64Type(), count);
    Value divisor = arith::SelectOp::create(
        b, hasFlag(NSG_MEAN), arith::UIToFPOp::create(b, f32, integer), one);
    Value factor = arith::DivFOp::create(b, weight, divisor);
    LLVM::StoreOp::create(b, factor, elementAt(b, factors, f32, position),
                          /*alignment=*/4);
  });
}

void ExpandBuilder::run(Value item, Value firstThread) {
  auto [first, limit] = getIds(item);
  Value count = arith::SubIOp::create(b, limit, first);
  Value begin = task.index(offsetof(nsg_lookup_task, position_begin));
  Value stride = task.index(offsetof(nsg_lookup_task, gradient_stride));
  Value place = arith::AddIOp::create(
      b, task.index(offsetof(nsg_lookup_task, gradient_begin)),
      arith::MulIOp::create(b, item, stride));
  Value place64 = arith::IndexCastOp::create(b, b.getI64Type(), place);
  Value places = positions.pointer(offsetof(nsg_positions, gradient_offsets));
  auto loop =
      scf::ForOp::create(b, arith::AddIOp::create(b, first, firstThread), limit,
                         k.constant(kThreadsPerItem));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value id = loop.getInductionVar();
  Value position = arith::AddIOp::create(b, begin, id);
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value isSorted = arith::XOrIOp::create(b, hasFlag(NSG_UNSORTED), yes);
  emitIf(b, isSorted, [&] { writeKey(position, loadId(id)); });
  LLVM::StoreOp::create(b, place64,
                        elementAt(b, places, b.getI64Type(), position),
                        /*alignment=*/8);
  writeFactor(position, id, count);
}

void createExpandKernel(gpu::GPUModuleOp module) {
  Type pointer = getDevicePointerType(module.getContext());
  KernelBuilder k(module, "nsg_expand", {pointer, pointer, pointer},
                  kSortResidentBlocks);
  ImplicitLocOpBuilder &b = k.b;
  Value number =
      toIndex(b, structAt(b, k.argument(1), sizeof(int32_t), k.block).i32(0));
  DeviceStruct task =
      structAt(b, k.argument(0), sizeof(nsg_lookup_task), number);
  Value ofTask = arith::SubIOp::create(
      b, k.block, task.index32(offsetof(nsg_lookup_task, first_expand_block)));
  Value threads = k.constant(kThreadsPerItem);
  Value item = arith::AddIOp::create(
      b, arith::MulIOp::create(b, ofTask, k.constant(NSG_EXPAND_ITEMS)),
      arith::DivUIOp::create(b, k.thread, threads));
  Value ofItem = arith::RemUIOp::create(b, k.thread, threads);
  Value isThere =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, item,
                            task.index(offsetof(nsg_lookup_task, items)));
  emitIf(b, isThere, [&] { ExpandBuilder(k, task).run(item, ofItem); });
  k.finish();
}

//===----------------------------------------------------------------------===//
// nsg_ranges
//===----------------------------------------------------------------------===//

/// The number of distinct keys below `key`.
static Value countBelow(KernelBuilder &k, DeviceStruct &sorted, Value numRuns,
                        Value key) {
  ImplicitLocOpBuilder &b = k.b;
  Value isShort = isFourBytes(b, sorted.i32(offsetof(nsg_sorted, key_bytes)));
  Value keys = sorted.pointer(offsetof(nsg_sorted, keys));
  return findFirst(k, k.constant(0), numRuns, [&](Value run) -> Value {
    Value found = choose(
        b, isShort, b.getI64Type(),
        [&]() -> Value {
          Value low = structAt(b, keys, sizeof(int32_t), run).i32(0);
          return arith::ExtUIOp::create(b, b.getI64Type(), low);
        },
        [&] { return structAt(b, keys, sizeof(int64_t), run).i64(0); });
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, found, key);
  });
}

void createRangesKernel(gpu::GPUModuleOp module) {
  Builder types(module.getContext());
  Type pointer = getDevicePointerType(module.getContext());
  KernelBuilder k(module, "nsg_ranges", {pointer, types.getI32Type(), pointer},
                  kSortResidentBlocks);
  ImplicitLocOpBuilder &b = k.b;
  DeviceStruct sorted(b, k.argument(2));
  Value numSlots = toIndex(b, k.argument(1));
  Value slot = arith::AddIOp::create(
      b, arith::MulIOp::create(b, k.block, k.constant(NSG_THREADS)), k.thread);
  Value isThere =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ule, slot, numSlots);
  emitIf(b, isThere, [&] {
    Value runs = sorted.pointer(offsetof(nsg_sorted, num_runs));
    Value numRuns = toIndex(b, DeviceStruct(b, runs).i32(0));
    Value isSlot =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, slot, numSlots);
    // The one behind the last slot takes the end of its keys.
    Value one = k.constant(1);
    Value key = choose(
        b, isSlot, b.getI64Type(),
        [&] {
          return structAt(b, k.argument(0), sizeof(nsg_slot), slot)
              .i64(offsetof(nsg_slot, key_begin));
        },
        [&] {
          Value last = arith::SubIOp::create(b, slot, one);
          return structAt(b, k.argument(0), sizeof(nsg_slot), last)
              .i64(offsetof(nsg_slot, key_end));
        });
    Value below = countBelow(k, sorted, numRuns, key);
    Value below32 = arith::IndexCastOp::create(b, b.getI32Type(), below);
    Value begins = sorted.pointer(offsetof(nsg_sorted, run_begin));
    LLVM::StoreOp::create(b, below32,
                          elementAt(b, begins, b.getI32Type(), slot),
                          /*alignment=*/4);
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, slot, k.constant(0));
    emitIf(b, isFirst, [&] {
      Value starts = sorted.pointer(offsetof(nsg_sorted, starts));
      Value count = arith::TruncIOp::create(
          b, b.getI32Type(), sorted.i64(offsetof(nsg_sorted, num_positions)));
      LLVM::StoreOp::create(b, count,
                            elementAt(b, starts, b.getI32Type(), numRuns),
                            /*alignment=*/4);
    });
  });
  k.finish();
}

} // namespace neuroshard
