//===- SmallKernels.cpp - Ordering the ids of slots with few rows ---------===//
//
// nsg_small_order: a thread for each row of each piece counts the ids of lesser
// rows, which is where its own begin, and writes the positions of its own from
// there on. No thread waits for another, and nothing is sorted.
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

namespace {
/// One row of one piece of a task.
class OrderBuilder {
public:
  OrderBuilder(KernelBuilder &k, const DeviceStruct &task, Value piece,
               Value row)
      : k(k), b(k.b), task(task), pieces(k.b, k.argument(2)), piece(piece),
        row(row) {}

  void run();

private:
  void orderIds(Type idType);
  Value rowAt(Type idType, Value id);
  Value countLesser(Type idType);
  void writeOwn(Type idType, Value place);
  void store(size_t array, Value number, Value value);
  Value toI64(Value value) {
    return arith::IndexCastOp::create(b, b.getI64Type(), value);
  }
  Value add(Value lhs, Value rhs) { return arith::AddIOp::create(b, lhs, rhs); }
  Value multiply(Value lhs, Value rhs) {
    return arith::MulIOp::create(b, lhs, rhs);
  }

  KernelBuilder &k;
  ImplicitLocOpBuilder &b;
  DeviceStruct task, pieces;
  Value piece, row;
  /// Positions of the piece's ids in `ids`.
  Value begin, end;
};
} // namespace

/// Element `number`, an index, of an array of i32 gets an index.
void OrderBuilder::store(size_t array, Value number, Value value) {
  Value element =
      structAt(b, pieces.pointer(array), sizeof(int32_t), number).getAddress();
  Value narrow = arith::IndexCastOp::create(b, b.getI32Type(), value);
  LLVM::StoreOp::create(b, narrow, element, /*alignment=*/4);
}

/// The row of an id in the slot, as unsigned: that of a bad one is behind all
/// rows.
Value OrderBuilder::rowAt(Type idType, Value id) {
  Value ids = task.pointer(offsetof(nsg_lookup_task, ids));
  unsigned bytes = idType.getIntOrFloatBitWidth() / 8;
  Value value = structAt(b, ids, bytes, id).load(0, idType);
  if (!idType.isInteger(64))
    value = arith::ExtSIOp::create(b, b.getI64Type(), value);
  return arith::SubIOp::create(b, value,
                               task.i64(offsetof(nsg_lookup_task, row_begin)));
}

Value OrderBuilder::countLesser(Type idType) {
  Value own = toI64(row);
  auto loop = scf::ForOp::create(b, begin, end, k.constant(1),
                                 ValueRange{k.constant(0)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value isLesser = arith::CmpIOp::create(
      b, arith::CmpIPredicate::ult, rowAt(idType, loop.getInductionVar()), own);
  Value one = arith::IndexCastUIOp::create(b, b.getIndexType(), isLesser);
  scf::YieldOp::create(b, add(loop.getRegionIterArgs()[0], one));
  return loop.getResult(0);
}

/// The "row" behind the last one is that of some bad ids; nobody reads theirs.
void OrderBuilder::writeOwn(Type idType, Value place) {
  Value own = toI64(row);
  Value position = task.index(offsetof(nsg_lookup_task, position_begin));
  auto loop =
      scf::ForOp::create(b, begin, end, k.constant(1), ValueRange{place});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value id = loop.getInductionVar(), at = loop.getRegionIterArgs()[0];
  Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                      rowAt(idType, id), own);
  emitIf(b, isOwn,
         [&] { store(offsetof(nsg_pieces, order), at, add(position, id)); });
  Value one = arith::IndexCastUIOp::create(b, b.getIndexType(), isOwn);
  scf::YieldOp::create(b, add(at, one));
}

void OrderBuilder::orderIds(Type idType) {
  Value number =
      add(task.index32(offsetof(nsg_lookup_task, first_piece)), piece);
  Value place =
      add(multiply(number, k.constant(NSG_PIECE)), countLesser(idType));
  Value stride = pieces.index(offsetof(nsg_pieces, stride));
  store(offsetof(nsg_pieces, starts), add(multiply(number, stride), row),
        place);
  writeOwn(idType, place);
}

void OrderBuilder::run() {
  Value items = task.index(offsetof(nsg_lookup_task, items));
  Value last = getIdBegin(k, task, items);
  Value size = k.constant(NSG_PIECE);
  begin = add(getIdBegin(k, task, k.constant(0)), multiply(piece, size));
  end = arith::MinUIOp::create(b, add(begin, size), last);
  Value isLong = hasFlag(b, task, NSG_ID64);
  emitIf(b, isLong, [&] { orderIds(b.getI64Type()); });
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  emitIf(b, arith::XOrIOp::create(b, isLong, yes),
         [&] { orderIds(b.getI32Type()); });
}

void createSmallOrderKernel(gpu::GPUModuleOp module) {
  Type pointer = getDevicePointerType(module.getContext());
  KernelBuilder k(module, "nsg_small_order", {pointer, pointer, pointer},
                  kSortResidentBlocks);
  ImplicitLocOpBuilder &b = k.b;
  Value number =
      structAt(b, k.argument(1), sizeof(int32_t), k.block).index32(0);
  DeviceStruct task =
      structAt(b, k.argument(0), sizeof(nsg_lookup_task), number);
  Value ofTask = arith::SubIOp::create(
      b, k.block, task.index32(offsetof(nsg_lookup_task, first_order_block)));
  Value item = arith::AddIOp::create(
      b, arith::MulIOp::create(b, ofTask, k.constant(NSG_THREADS)), k.thread);
  // One more than there are rows: the last one's ids end where its own begin.
  Value rows = arith::AddIOp::create(
      b, task.index(offsetof(nsg_lookup_task, rows)), k.constant(1));
  Value piece = arith::DivUIOp::create(b, item, rows);
  Value row = arith::RemUIOp::create(b, item, rows);
  Value pieces = task.index32(offsetof(nsg_lookup_task, num_pieces));
  Value isThere =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, piece, pieces);
  emitIf(b, isThere, [&] { OrderBuilder(k, task, piece, row).run(); });
  k.finish();
}

} // namespace neuroshard
