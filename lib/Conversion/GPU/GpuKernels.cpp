//===- GpuKernels.cpp - Kernels that find their work and call a variant ---===//

#include "GpuKernels.h"

#include "DeviceStruct.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstddef>

using namespace mlir;

namespace neuroshard {

/// Resident blocks of NSG_THREADS threads share 65,536 registers: 4 blocks give
/// lookups 64 per thread, 3 give updates, which hold gradients, weights and
/// states at once, 80. One block less if some body is large.
static int32_t getResidentBlocks(ArrayRef<Variant> variants, int32_t most) {
  bool hasLarge = llvm::any_of(
      variants, [](const Variant &variant) { return variant.isLarge; });
  return hasLarge ? most - 1 : most;
}
static constexpr int32_t kLookupBlocks = 4, kUpdateBlocks = 3;

void setLaunchBounds(gpu::GPUFuncOp kernel, int32_t residentBlocks) {
  Builder b(kernel.getContext());
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({NSG_THREADS, 1, 1}));
  kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                  b.getI32IntegerAttr(residentBlocks));
}

KernelBuilder::KernelBuilder(gpu::GPUModuleOp module, StringRef name,
                             ArrayRef<Type> arguments, int32_t residentBlocks)
    : b(ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody())) {
  function = gpu::GPUFuncOp::create(
      b, name, FunctionType::get(b.getContext(), arguments, {}));
  setLaunchBounds(function, residentBlocks);
  b.setInsertionPointToStart(&function.getBody().front());
  block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
}

void KernelBuilder::finish() {
  b.setInsertionPointToEnd(&function.getBody().front());
  gpu::ReturnOp::create(b);
}

Value KernelBuilder::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

namespace {
/// The group of lanes that a thread belongs to.
struct Group {
  Value number, lane, mask;
};
} // namespace

/// Group t / lanes of the block, with the bits of its lanes in the warp.
static Group makeGroup(KernelBuilder &k, int64_t lanes) {
  ImplicitLocOpBuilder &b = k.b;
  Group group;
  group.number = arith::DivUIOp::create(b, k.thread, k.constant(lanes));
  group.lane = arith::RemUIOp::create(b, k.thread, k.constant(lanes));
  auto i32 = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(b.getI32Type(),
                            APInt(32, static_cast<uint64_t>(value), false,
                                  /*implicitTrunc=*/true)));
  };
  Value inWarp = arith::RemUIOp::create(b, k.thread, k.constant(kWarp));
  Value first = arith::SubIOp::create(b, inWarp, group.lane);
  group.mask = arith::ShLIOp::create(
      b, i32((int64_t{1} << lanes) - 1),
      arith::IndexCastOp::create(b, b.getI32Type(), first));
  return group;
}

/// Emits a switch over the variants, which runs none for other numbers.
static void switchVariants(KernelBuilder &k, Value number,
                           ArrayRef<Variant> variants,
                           llvm::function_ref<void(const Variant &)> emit) {
  ImplicitLocOpBuilder &b = k.b;
  SmallVector<int64_t> cases =
      llvm::to_vector(llvm::seq<int64_t>(0, variants.size()));
  auto choice = scf::IndexSwitchOp::create(b, TypeRange{}, number, cases,
                                           static_cast<unsigned>(cases.size()));
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&choice.getDefaultRegion());
  scf::YieldOp::create(b);
  for (auto [variant, region] :
       llvm::zip_equal(variants, choice.getCaseRegions())) {
    b.createBlock(&region);
    emit(variant);
    scf::YieldOp::create(b);
  }
}

/// Emits `emit` under the condition item < end.
static void guardItem(ImplicitLocOpBuilder &b, Value item, Value end,
                      llvm::function_ref<void()> emit) {
  Value isThere =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, item, end);
  auto branch = scf::IfOp::create(b, isThere, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emit();
}

/// Element `number` of an array of i32 that the kernel does not write, as
/// index.
static Value loadI32(ImplicitLocOpBuilder &b, Value array, Value number) {
  Value value = structAt(b, array, sizeof(int32_t), number).i32(0);
  return arith::IndexCastOp::create(b, b.getIndexType(), value);
}

void createTaskKernel(gpu::GPUModuleOp module, const TaskKernel &kernel,
                      ArrayRef<Variant> variants) {
  Type pointer = getDevicePointerType(module.getContext());
  SmallVector<Type> types(kernel.reportsBadIds ? 3 : 2, pointer);
  KernelBuilder k(module, kernel.name, types,
                  getResidentBlocks(variants, kLookupBlocks));
  ImplicitLocOpBuilder &b = k.b;
  Value number = loadI32(b, k.argument(1), k.block);
  DeviceStruct task =
      structAt(b, k.argument(0), sizeof(nsg_lookup_task), number);
  Value ofTask =
      arith::SubIOp::create(b, k.block, task.index32(kernel.firstBlockField));
  Value items = task.index(kernel.itemsField);
  Value perGroup = task.index32(offsetof(nsg_lookup_task, items_per_group));
  Value badId = kernel.reportsBadIds ? k.argument(2)
                                     : Value(LLVM::ZeroOp::create(b, pointer));
  switchVariants(k, task.index32(kernel.variantField), variants,
                 [&](const Variant &variant) {
                   Group group = makeGroup(k, variant.shape.lanes);
                   Value size = arith::MulIOp::create(
                       b, perGroup, k.constant(variant.shape.itemsPerBlock()));
                   Value begin = arith::MulIOp::create(b, ofTask, size);
                   Value first = arith::AddIOp::create(b, begin, group.number);
                   Value end = arith::MinUIOp::create(
                       b, arith::AddIOp::create(b, begin, size), items);
                   func::CallOp::create(b, variant.function,
                                        ValueRange{task.getAddress(), first,
                                                   end, group.lane, group.mask,
                                                   number, badId});
                 });
  k.finish();
}

//===----------------------------------------------------------------------===//
// Runs of slots
//===----------------------------------------------------------------------===//

/// Emits a bisection: the first number in [low, high) for which
/// isBefore(number) is false, or `high`. It must be false for all later
/// numbers.
static Value findFirst(KernelBuilder &k, Value low, Value high,
                       llvm::function_ref<Value(Value)> isBefore) {
  ImplicitLocOpBuilder &b = k.b;
  Type index = b.getIndexType();
  auto loop =
      scf::WhileOp::create(b, TypeRange{index, index}, ValueRange{low, high});
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, {index, index},
                                {b.getLoc(), b.getLoc()});
  Value goesOn =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                            before->getArgument(0), before->getArgument(1));
  scf::ConditionOp::create(b, goesOn, before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, {index, index},
                               {b.getLoc(), b.getLoc()});
  low = after->getArgument(0);
  high = after->getArgument(1);
  Value middle = arith::DivUIOp::create(b, arith::AddIOp::create(b, low, high),
                                        k.constant(2));
  Value goesRight = isBefore(middle);
  Value next = arith::AddIOp::create(b, middle, k.constant(1));
  low = arith::SelectOp::create(b, goesRight, next, low);
  high = arith::SelectOp::create(b, goesRight, high, middle);
  scf::YieldOp::create(b, ValueRange{low, high});
  return loop.getResult(0);
}

/// Emits a bisection: the last number below `count`, which is at least 1, with
/// begin(number) <= place. begin must ascend, and begin(0) <= place.
static Value findLast(KernelBuilder &k, Value count, Value place,
                      llvm::function_ref<Value(Value)> begin) {
  ImplicitLocOpBuilder &b = k.b;
  Value one = k.constant(1);
  Value next = findFirst(k, one, count, [&](Value number) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ule, begin(number),
                                 place);
  });
  return arith::SubIOp::create(b, next, one);
}

namespace {
/// Maps virtual blocks to runs of the slots of a launch. A block takes at least
/// 2^shift runs, so slot s has enough of them with those from
/// run_begin[s] / 2^shift + s on, and no prefix sum over slots is needed.
class RunBlocks {
public:
  struct Slots {
    Value first, end;
  };
  /// `groups`: those of a block, a power of two.
  RunBlocks(KernelBuilder &k, const DeviceStruct &sorted, Slots slots,
            int64_t groups)
      : k(k), b(k.b), sorted(sorted), slots(slots),
        runBegin(DeviceStruct(sorted).pointer(offsetof(nsg_sorted, run_begin))),
        groups(groups), shift(logarithm(groups)) {}

  /// Lets each group take several runs if most have one position and if there
  /// are enough for all blocks of the grid.
  void takeShortRuns(Value grid);

  /// Null without takeShortRuns().
  Value areShort() { return isShort; }
  /// A shift, as registers are scarce.
  Value runsOfGroup() {
    Value ofGroup = arith::SubIOp::create(b, shift, logarithm(groups));
    return arith::ShLIOp::create(b, k.constant(1), ofGroup);
  }
  Value runBeginOf(Value slot) { return loadI32(b, runBegin, slot); }
  Value firstBlockOf(Value slot) {
    Value blocks = arith::ShRUIOp::create(b, runBeginOf(slot), shift);
    return arith::AddIOp::create(b, blocks, slot);
  }
  /// The slot of a virtual block, searched from the slot of an earlier block
  /// on.
  Value findSlot(Value block, Value before);

private:
  KernelBuilder &k;
  ImplicitLocOpBuilder &b;
  Value logarithm(int64_t powerOfTwo) {
    return k.constant(llvm::Log2_64(static_cast<uint64_t>(powerOfTwo)));
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, predicate, lhs, rhs);
  }

  DeviceStruct sorted;
  Slots slots;
  Value runBegin;
  int64_t groups;
  Value isShort, shift;
};
} // namespace

/// Runs are short if there are at most 3 positions for 2 runs: measured on an
/// H100, updates of 1.1 and 1.5 positions for a run take 15 and 6 % less time
/// if groups take several, of 2 and more up to 47 % more.
static constexpr int64_t kShortPositions = 3, kShortRuns = 2;
/// Runs that a group takes at most.
static constexpr int64_t kMostRuns = 8;
/// Virtual blocks for each of the grid, at least, so that none waits long for
/// the last.
static constexpr int64_t kFewestRounds = 4;

void RunBlocks::takeShortRuns(Value grid) {
  Value first = runBeginOf(slots.first), end = runBeginOf(slots.end);
  Value runs = arith::SubIOp::create(b, end, first);
  Value starts = sorted.pointer(offsetof(nsg_sorted, starts));
  Value positions = arith::SubIOp::create(b, loadI32(b, starts, end),
                                          loadI32(b, starts, first));
  isShort =
      compare(arith::CmpIPredicate::ule,
              arith::MulIOp::create(b, positions, k.constant(kShortRuns)),
              arith::MulIOp::create(b, runs, k.constant(kShortPositions)));
  Value enough =
      arith::MulIOp::create(b, grid, k.constant(groups * kFewestRounds));
  for (int64_t several = 2; several <= kMostRuns; several *= 2) {
    enough = arith::AddIOp::create(b, enough, enough);
    Value takes = arith::AndIOp::create(
        b, isShort, compare(arith::CmpIPredicate::uge, runs, enough));
    shift =
        arith::SelectOp::create(b, takes, logarithm(groups * several), shift);
  }
}

/// Steps of doubling length from `before`, which is mostly the slot or near it,
/// then a bisection of the last step.
Value RunBlocks::findSlot(Value block, Value before) {
  Type index = b.getIndexType();
  Value one = k.constant(1);
  auto isPast = [&](Value slot) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ugt,
                                 firstBlockOf(slot), block);
  };
  Value next = arith::AddIOp::create(b, before, one);
  auto loop = scf::WhileOp::create(b, TypeRange{index, index},
                                   ValueRange{before, next});
  {
    OpBuilder::InsertionGuard guard(b);
    Block *test = b.createBlock(&loop.getBefore(), {}, {index, index},
                                {b.getLoc(), b.getLoc()});
    Value low = test->getArgument(0), high = test->getArgument(1);
    // Ends at the last slot's end: its first block is after all of theirs.
    Value last = arith::MinUIOp::create(b, high, slots.end);
    Value goesOn = arith::XOrIOp::create(
        b, isPast(last), arith::ConstantOp::create(b, b.getBoolAttr(true)));
    scf::ConditionOp::create(b, goesOn, ValueRange{low, last});
    Block *step = b.createBlock(&loop.getAfter(), {}, {index, index},
                                {b.getLoc(), b.getLoc()});
    Value from = step->getArgument(0), reached = step->getArgument(1);
    Value length = arith::SubIOp::create(b, reached, from);
    Value twice = arith::AddIOp::create(b, length, length);
    scf::YieldOp::create(
        b, ValueRange{reached, arith::AddIOp::create(b, reached, twice)});
  }
  Value low = arith::AddIOp::create(b, loop.getResult(0), one);
  Value found = findFirst(k, low, loop.getResult(1), [&](Value slot) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ule,
                                 firstBlockOf(slot), block);
  });
  return arith::SubIOp::create(b, found, one);
}

/// Emits the call for the runs that a group takes: of several short ones if
/// there is a body for them and `areShort` says so, else of one.
static void callForRuns(ImplicitLocOpBuilder &b, Value areShort,
                        const Variant &variant, ValueRange arguments) {
  if (!variant.ofShortRuns) {
    func::CallOp::create(b, variant.function, arguments);
    return;
  }
  OpBuilder::InsertionGuard guard(b);
  auto branch = scf::IfOp::create(b, areShort, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  func::CallOp::create(b, variant.ofShortRuns, arguments);
  b.setInsertionPointToStart(branch.elseBlock());
  func::CallOp::create(b, variant.function, arguments);
}

void createRunKernel(gpu::GPUModuleOp module, const RunKernel &kernel,
                     const Variant &variant) {
  Builder types(module.getContext());
  Type pointer = getDevicePointerType(module.getContext());
  Type i32 = types.getI32Type();
  int32_t resident = kernel.hasFewItems
                         ? kUpdateBlocks - 1
                         : getResidentBlocks(variant, kUpdateBlocks);
  KernelBuilder k(module, kernel.name, {pointer, i32, i32, pointer}, resident);
  ImplicitLocOpBuilder &b = k.b;
  DeviceStruct sorted(b, k.argument(3));
  auto asIndex = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, b.getIndexType(), value);
  };
  Value firstSlot = asIndex(k.argument(1)), endSlot = asIndex(k.argument(2));
  Value grid = gpu::GridDimOp::create(b, gpu::Dimension::x);
  RunBlocks blocks(k, sorted, {firstSlot, endSlot},
                   variant.shape.itemsPerBlock());
  if (variant.ofShortRuns)
    blocks.takeShortRuns(grid);
  Value firstBlock =
      arith::AddIOp::create(b, blocks.firstBlockOf(firstSlot), k.block);
  auto loop = scf::ForOp::create(b, firstBlock, blocks.firstBlockOf(endSlot),
                                 grid, ValueRange{firstSlot});
  b.setInsertionPointToStart(loop.getBody());
  Value block = loop.getInductionVar();
  Value number = blocks.findSlot(block, loop.getRegionIterArgs().front());
  DeviceStruct slot = structAt(b, k.argument(0), sizeof(nsg_slot), number);
  Value firstRun = blocks.runBeginOf(number);
  Value next = arith::AddIOp::create(b, number, k.constant(1));
  Value runs = arith::SubIOp::create(b, blocks.runBeginOf(next), firstRun);
  Value ofSlot = arith::SubIOp::create(b, block, blocks.firstBlockOf(number));
  Group group = makeGroup(k, variant.shape.lanes);
  Value groups = arith::MulIOp::create(
      b, ofSlot, k.constant(variant.shape.itemsPerBlock()));
  Value taken = blocks.runsOfGroup();
  Value item = arith::MulIOp::create(
      b, arith::AddIOp::create(b, groups, group.number), taken);
  Value end =
      arith::MinUIOp::create(b, arith::AddIOp::create(b, item, taken), runs);
  guardItem(b, item, end, [&] {
    callForRuns(b, blocks.areShort(), variant,
                {slot.getAddress(), sorted.getAddress(), item, end, firstRun,
                 group.lane, group.mask});
  });
  scf::YieldOp::create(b, number);
  k.finish();
}

//===----------------------------------------------------------------------===//
// Chunks of long runs
//===----------------------------------------------------------------------===//

/// A warp for each NSG_CHUNK positions, counted from 0: at most one chunk
/// begins there. In most none does, so idle lanes cost little.
void createPartialsKernel(gpu::GPUModuleOp module, ArrayRef<Variant> variants) {
  Builder types(module.getContext());
  Type pointer = getDevicePointerType(module.getContext());
  KernelBuilder k(module, "nsg_partials",
                  {pointer, types.getI32Type(), pointer},
                  getResidentBlocks(variants, kLookupBlocks));
  ImplicitLocOpBuilder &b = k.b;
  DeviceStruct sorted(b, k.argument(2));
  Value numSlots =
      arith::IndexCastOp::create(b, b.getIndexType(), k.argument(1));
  Value runBegin = sorted.pointer(offsetof(nsg_sorted, run_begin));
  Value starts = sorted.pointer(offsetof(nsg_sorted, starts));
  Value numRuns = loadI32(b, runBegin, numSlots);
  Value size = k.constant(NSG_CHUNK);
  Value chunks = arith::DivUIOp::create(
      b, sorted.index(offsetof(nsg_sorted, num_positions)), size);
  Value warps = k.constant(NSG_THREADS / kWarp);
  Value first = arith::AddIOp::create(
      b, arith::MulIOp::create(b, k.block, warps),
      arith::DivUIOp::create(b, k.thread, k.constant(kWarp)));
  Value stride = arith::MulIOp::create(
      b, gpu::GridDimOp::create(b, gpu::Dimension::x), warps);
  // findLast needs at least one run.
  Value hasRuns = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, numRuns,
                                        k.constant(0));
  Value end = arith::SelectOp::create(b, hasRuns, chunks, first);
  auto loop = scf::ForOp::create(b, first, end, stride);
  b.setInsertionPointToStart(loop.getBody());
  Value chunk = loop.getInductionVar();
  // A chunk that begins at one of them has the last one, too.
  Value one = k.constant(1);
  Value last = arith::SubIOp::create(
      b, arith::MulIOp::create(b, arith::AddIOp::create(b, chunk, one), size),
      one);
  Value run = findLast(k, numRuns, last,
                       [&](Value u) { return loadI32(b, starts, u); });
  Value next = arith::AddIOp::create(b, run, one);
  Value inRun = arith::SubIOp::create(b, last, loadI32(b, starts, run));
  Value inChunk = arith::RemUIOp::create(b, inRun, size);
  Value limit =
      arith::AddIOp::create(b, arith::SubIOp::create(b, last, inChunk), size);
  Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge,
                                         loadI32(b, starts, next), limit);
  Value slotNumber = findLast(k, numSlots, run,
                              [&](Value s) { return loadI32(b, runBegin, s); });
  auto branch = scf::IfOp::create(b, isInside, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  DeviceStruct slot = structAt(b, k.argument(0), sizeof(nsg_slot), slotNumber);
  Value inWarp = arith::RemUIOp::create(b, k.thread, k.constant(kWarp));
  switchVariants(k, slot.index32(offsetof(nsg_slot, partial_variant)), variants,
                 [&](const Variant &variant) {
                   Group group = makeGroup(k, variant.shape.lanes);
                   auto emit = [&] {
                     func::CallOp::create(b, variant.function,
                                          ValueRange{slot.getAddress(),
                                                     sorted.getAddress(), chunk,
                                                     limit, k.constant(0),
                                                     group.lane, group.mask});
                   };
                   if (variant.shape.lanes == kWarp)
                     return emit();
                   guardItem(b, inWarp, k.constant(variant.shape.lanes), emit);
                 });
  k.finish();
}

} // namespace neuroshard
