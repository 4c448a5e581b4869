//===- GpuInputs.cpp - Inputs of GPU kernel bodies ------------------------===//

#include "GpuInputs.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstddef>

using namespace mlir;

namespace neuroshard {

static Value loadElement(ImplicitLocOpBuilder &b, const DeviceStruct &from,
                         size_t offset, Type type, Value position) {
  Value array = DeviceStruct(from).array(offset, getFlatType(type),
                                         /*invariant=*/true);
  return memref::LoadOp::create(b, array, position);
}

static Value loadIndexElement(ImplicitLocOpBuilder &b, const DeviceStruct &from,
                              size_t offset, Type type, Value position) {
  return arith::IndexCastOp::create(
      b, b.getIndexType(), loadElement(b, from, offset, type, position));
}

static Value addConstant(ImplicitLocOpBuilder &b, Value value, int64_t addend) {
  return arith::AddIOp::create(b, value,
                               arith::ConstantIndexOp::create(b, addend));
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

TaskInputs::TaskInputs(ImplicitLocOpBuilder &b, const DeviceStruct &task,
                       const Items &items, const Settings &settings)
    : b(b), task(task), items(items), settings(settings) {
  Type idType = settings.id == IdType::I32 ? b.getI32Type() : b.getI64Type();
  ids = this->task.array(offsetof(nsg_lookup_task, ids), getFlatType(idType),
                         /*invariant=*/true);
  rows = this->task.i64(offsetof(nsg_lookup_task, rows));
  rowBegin = this->task.i64(offsetof(nsg_lookup_task, row_begin));
}

/// Emits a loop over the items from `first` on. `emit` gets the item and the
/// carried values, and returns those of the next iteration.
static void
emitLoop(ImplicitLocOpBuilder &b, const Items &items, ValueRange carried,
         llvm::function_ref<SmallVector<Value>(Value item, ValueRange)> emit) {
  Value step = arith::ConstantIndexOp::create(b, items.step);
  auto loop = scf::ForOp::create(b, items.first, items.end, step, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      emit(loop.getInductionVar(), loop.getRegionIterArgs());
  // Without carried values the builder has already made the terminator.
  if (!carried.empty())
    scf::YieldOp::create(b, next);
}

/// Emits a loop that takes `atOnce` items in each iteration, and one that takes
/// the rest one by one.
static void emitRounds(ImplicitLocOpBuilder &b, const Items &items,
                       int64_t atOnce,
                       llvm::function_ref<void(ArrayRef<Value>)> emit) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  int64_t round = atOnce * items.step;
  Value end = arith::MaxUIOp::create(b, items.first, items.end);
  Value left = addConstant(b, arith::SubIOp::create(b, end, items.first),
                           items.step - 1);
  Value rounds = arith::DivUIOp::create(b, left, constant(round));
  Value middle = arith::AddIOp::create(
      b, items.first, arith::MulIOp::create(b, rounds, constant(round)));
  auto emitSome = [&](const Items &some, int64_t count) {
    emitLoop(b, some, {}, [&](Value item, ValueRange) {
      SmallVector<Value> together{item};
      for (int64_t i = 1; i < count; ++i)
        together.push_back(addConstant(b, item, i * items.step));
      emit(together);
      return SmallVector<Value>();
    });
  };
  emitSome({items.first, middle, round}, atOnce);
  emitSome({middle, end, items.step}, 1);
}

void TaskInputs::forEachBag(llvm::function_ref<void(Value)> emit) {
  if (settings.isFixed || !settings.readsAhead)
    return emitLoop(b, items, {}, [&](Value item, ValueRange) {
      bag = settings.isFixed ? getFixedBag(item) : loadBag(item);
      emit(item);
      return SmallVector<Value>();
    });
  // A block has items, but one of its groups may have none.
  Value last = addConstant(b, items.end, -1);
  Span first = loadBag(arith::MinUIOp::create(b, items.first, last));
  emitLoop(b, items, {first.first, first.limit},
           [&](Value item, ValueRange carried) {
             Value next = addConstant(b, item, items.step);
             Span ahead = loadBag(arith::MinUIOp::create(b, next, last));
             bag = {carried[0], carried[1]};
             emit(item);
             return SmallVector<Value>{ahead.first, ahead.limit};
           });
}

void TaskInputs::forEachItem(llvm::function_ref<void(Value)> emit) {
  if (settings.isPooled)
    return forEachBag(emit);
  emitLoop(b, items, {}, [&](Value item, ValueRange) {
    emit(item);
    return SmallVector<Value>();
  });
}

void TaskInputs::forEachItems(int64_t atOnce,
                              llvm::function_ref<void(ArrayRef<Value>)> emit) {
  if (!settings.isPerId)
    return emitRounds(b, items, atOnce, emit);
  forEachBag([&](Value item) {
    beginGradients(item);
    emitRounds(b, {bag.first, bag.limit, 1}, atOnce, emit);
  });
}

Value TaskInputs::addFirstId(Value number) {
  Value first = task.index(offsetof(nsg_lookup_task, first_id));
  return arith::AddIOp::create(b, first, number);
}

Value TaskInputs::hasFlag(int32_t flag) {
  Value flags = task.i32(offsetof(nsg_lookup_task, flags));
  Value bit = arith::ConstantOp::create(b, b.getI32IntegerAttr(flag));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                               arith::AndIOp::create(b, flags, bit), bit);
}

Span TaskInputs::getFixedBag(Value item) {
  Value pooling = task.index(offsetof(nsg_lookup_task, pooling));
  Value first = addFirstId(arith::MulIOp::create(b, item, pooling));
  return {first, arith::AddIOp::create(b, first, pooling)};
}

Span TaskInputs::loadOffsets(Value item) {
  size_t offsets = offsetof(nsg_lookup_task, offsets);
  Type i64 = b.getI64Type();
  Value first = loadIndexElement(b, task, offsets, i64, item);
  Value next = addConstant(b, item, 1);
  return {first, loadIndexElement(b, task, offsets, i64, next)};
}

/// A body that runs per id serves both bags with offsets and bags of one
/// length.
Span TaskInputs::loadBag(Value item) {
  if (!settings.isPerId)
    return loadOffsets(item);
  Type index = b.getIndexType();
  auto branch =
      scf::IfOp::create(b, TypeRange{index, index}, hasFlag(NSG_FIXED),
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  auto emitSide = [&](Block *block, llvm::function_ref<Span()> get) {
    b.setInsertionPointToStart(block);
    Span span = get();
    scf::YieldOp::create(b, ValueRange{span.first, span.limit});
  };
  emitSide(branch.thenBlock(), [&] { return getFixedBag(item); });
  emitSide(branch.elseBlock(), [&] { return loadOffsets(item); });
  return {branch.getResult(0), branch.getResult(1)};
}

/// All ids of a bag share its gradient.
void TaskInputs::beginGradients(Value item) {
  Value stride = task.index(offsetof(nsg_lookup_task, gradient_stride));
  gradientOffset = arith::AddIOp::create(
      b, task.index(offsetof(nsg_lookup_task, gradient_begin)),
      arith::MulIOp::create(b, item, stride));
  Type f32 = b.getF32Type();
  Value count = arith::SubIOp::create(b, bag.limit, bag.first);
  Value integer = arith::IndexCastOp::create(b, b.getI64Type(), count);
  Value one = arith::ConstantOp::create(b, b.getF32FloatAttr(1));
  divisor = arith::SelectOp::create(
      b, hasFlag(NSG_MEAN), arith::UIToFPOp::create(b, f32, integer), one);
}

/// The row in the slot; 0 for a bad id, so that every read is in bounds.
Value TaskInputs::getId(Value position) {
  if (!settings.isPooled)
    position = addFirstId(position);
  Value id = memref::LoadOp::create(b, ids, position);
  if (settings.id == IdType::I32)
    id = arith::ExtSIOp::create(b, b.getI64Type(), id);
  Value row = arith::SubIOp::create(b, id, rowBegin);
  Value isGood = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, row, rows);
  checks.push_back({isGood, position});
  Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
  Value safe = arith::SelectOp::create(b, isGood, row, zero);
  return arith::IndexCastOp::create(b, b.getIndexType(), safe);
}

void TaskInputs::finishIds() {
  if (!settings.badId || checks.empty())
    return checks.clear();
  Value areGood = checks.front().isGood;
  for (const Check &check : llvm::drop_begin(checks))
    areGood = arith::AndIOp::create(b, areGood, check.isGood);
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  auto negate = [&](Value value) -> Value {
    return arith::XOrIOp::create(b, value, yes);
  };
  auto branch = scf::IfOp::create(b, negate(areGood), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value shift = arith::ConstantOp::create(
      b, b.getI64IntegerAttr(NSG_BAD_ID_POSITION_BITS));
  Value number =
      arith::IndexCastOp::create(b, b.getI64Type(), settings.taskNumber);
  Value task = arith::ShLIOp::create(b, number, shift);
  for (const Check &check : checks) {
    auto report =
        scf::IfOp::create(b, negate(check.isGood), /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(report.thenBlock());
    Value position =
        arith::IndexCastOp::create(b, b.getI64Type(), check.position);
    Value place = arith::OrIOp::create(b, task, position);
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umin, settings.badId, place,
                              LLVM::AtomicOrdering::monotonic);
  }
  checks.clear();
}

Value TaskInputs::getSampleWeight(Value position) {
  return loadElement(b, task, offsetof(nsg_lookup_task, sample_weights),
                     b.getF32Type(), position);
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

void RunInputs::forEachItem(llvm::function_ref<void(Value)> emit) {
  if (areShort)
    return forEachAhead(emit);
  Value number = arith::AddIOp::create(b, firstRun, runs.first);
  row = loadRow(number);
  run = {loadStart(number), loadStart(addConstant(b, number, 1))};
  emit(runs.first);
}

/// A run begins where the one before ends. So the place of its first gradient
/// depends on two loads that can be made while that one is added up, and so can
/// those of its row and its end. Past the last run they are those of the last.
void RunInputs::forEachAhead(llvm::function_ref<void(Value)> emit) {
  auto cast = [&](Type type, Value value) -> Value {
    return arith::IndexCastOp::create(b, type, value);
  };
  // Carried in as few registers as hold them.
  Type i32 = b.getI32Type(), index = b.getIndexType();
  auto numberOf = [&](Value item) -> Value {
    return arith::AddIOp::create(b, firstRun, item);
  };
  Value last = addConstant(b, runs.end, -1);
  auto loadLimit = [&](Value item) -> Value {
    return cast(i32, loadStart(numberOf(addConstant(b, item, 1))));
  };
  Value begin = loadStart(numberOf(runs.first));
  SmallVector<Value> first{loadRow(numberOf(runs.first)), cast(i32, begin),
                           loadLimit(runs.first),
                           SortedInputs::getGradientOffset(begin)};
  emitLoop(b, runs, first, [&](Value item, ValueRange carried) {
    row = carried[0];
    run = {cast(index, carried[1]), cast(index, carried[2])};
    firstOffset = carried[3];
    ahead = {};
    readAhead = [&]() -> SmallVector<Value> {
      Value next = arith::MinUIOp::create(b, addConstant(b, item, 1), last);
      Value isLast =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, next, item);
      Value begin = arith::SelectOp::create(b, isLast, run.first, run.limit);
      return {loadRow(numberOf(next)), loadLimit(next),
              cast(i32, getPosition(begin))};
    };
    emit(item);
    if (ahead.empty())
      ahead = readAhead();
    return SmallVector<Value>{ahead[0], carried[2], ahead[1],
                              getOffsetAt(cast(index, ahead[2]))};
  });
}

Value RunInputs::loadRow(Value number) {
  Value bytes = sorted.i32(offsetof(nsg_sorted, key_bytes));
  Value four = arith::ConstantOp::create(b, b.getI32IntegerAttr(4));
  Value isShort =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bytes, four);
  size_t keys = offsetof(nsg_sorted, keys);
  // Little-endian: the low half of a long key is at twice the number.
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value scale = arith::SelectOp::create(b, isShort, one,
                                        arith::ConstantIndexOp::create(b, 2));
  Value word = arith::MulIOp::create(b, number, scale);
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  Value low =
      arith::ExtUIOp::create(b, i64, loadElement(b, sorted, keys, i32, word));
  // Short keys have no high word: read the low one again.
  Value highWord = arith::AddIOp::create(
      b, word,
      arith::SelectOp::create(b, isShort, arith::ConstantIndexOp::create(b, 0),
                              one));
  Value high = arith::ExtUIOp::create(
      b, i64, loadElement(b, sorted, keys, i32, highWord));
  Value shift = arith::ConstantOp::create(b, b.getI64IntegerAttr(32));
  Value longKey =
      arith::OrIOp::create(b, arith::ShLIOp::create(b, high, shift), low);
  Value key = arith::SelectOp::create(b, isShort, low, longKey);
  Value row =
      arith::SubIOp::create(b, key, slot.i64(offsetof(nsg_slot, key_begin)));
  return arith::IndexCastOp::create(b, b.getIndexType(), row);
}

/// Where a run begins, and the one before it ends.
Value RunInputs::loadStart(Value number) {
  return loadIndexElement(b, sorted, offsetof(nsg_sorted, starts),
                          b.getI32Type(), number);
}

Span ChunkInputs::getRun(Value) {
  Value size = arith::ConstantIndexOp::create(b, NSG_CHUNK);
  return {arith::SubIOp::create(b, limit, size), limit};
}

/// If there is an array for the sums of chunks, those of all chunks of the run
/// have been computed.
std::optional<SplitRun> RunInputs::splitRun(Span run) {
  Value size = arith::ConstantIndexOp::create(b, NSG_CHUNK);
  Value chunks = arith::DivUIOp::create(
      b, arith::SubIOp::create(b, run.limit, run.first), size);
  Value partials = sorted.pointer(offsetof(nsg_sorted, partials));
  Value null = LLVM::ZeroOp::create(b, partials.getType());
  Value isThere =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, partials, null);
  chunks = arith::SelectOp::create(b, isThere, chunks,
                                   arith::ConstantIndexOp::create(b, 0));
  Value firstChunk = arith::DivUIOp::create(b, run.first, size);
  SplitRun result;
  result.sums = {firstChunk, arith::AddIOp::create(b, firstChunk, chunks)};
  result.rest = {arith::AddIOp::create(b, run.first,
                                       arith::MulIOp::create(b, chunks, size)),
                 run.limit};
  result.partials = makeArray(b, partials, getFlatType(b.getF32Type()),
                              /*invariant=*/true);
  result.stride = sorted.index(offsetof(nsg_sorted, partial_stride));
  return result;
}

Value SortedInputs::getPosition(Value place) {
  return loadIndexElement(b, sorted, offsetof(nsg_sorted, order),
                          b.getI32Type(), place);
}

Value SortedInputs::getOffsetAt(Value position) {
  return loadIndexElement(b, sorted, offsetof(nsg_sorted, gradient_offsets),
                          b.getI64Type(), position);
}

Value SortedInputs::getGradientOffset(Value place) {
  return getOffsetAt(getPosition(place));
}

/// Loads from the array or, without one, the constant 1 of nsg_sorted: one load
/// without a branch.
Value SortedInputs::getFactor(Value place) {
  Value factors = sorted.pointer(offsetof(nsg_sorted, factors));
  Value null = LLVM::ZeroOp::create(b, factors.getType());
  Value isNull =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, factors, null);
  Value one = LLVM::GEPOp::create(
      b, factors.getType(), b.getI8Type(), sorted.getAddress(),
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offsetof(nsg_sorted, one))});
  Value from =
      structAt(b, factors, sizeof(float), getPosition(place)).getAddress();
  Value address = arith::SelectOp::create(b, isNull, one, from);
  return DeviceStruct(b, address).load(0, b.getF32Type());
}

} // namespace neuroshard
