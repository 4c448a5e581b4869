//===- SmallSlotInputs.cpp - Inputs of updates without a sort -------------===//

#include "SmallSlotInputs.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstddef>

using namespace mlir;

namespace neuroshard {

/// Counts that are read at once.
static constexpr int64_t kCountsInFlight = 8;

static Value makeIndex(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

static Value countRows(ImplicitLocOpBuilder &b, DeviceStruct slot) {
  return arith::SubIOp::create(b, slot.index(offsetof(nsg_slot, key_end)),
                               slot.index(offsetof(nsg_slot, key_begin)));
}

//===----------------------------------------------------------------------===//
// Sums of pieces
//===----------------------------------------------------------------------===//

PieceInputs::PieceInputs(ImplicitLocOpBuilder &b, const DeviceStruct &slot,
                         const DeviceStruct &sorted, Value item)
    : SortedInputs(b, slot, sorted), sum(item) {
  DeviceStruct own = slot;
  // Items fit 32 bits, whose division takes a fraction of the time.
  auto cast = [&](Type type, Value value) -> Value {
    return arith::IndexCastUIOp::create(b, type, value);
  };
  Type index = b.getIndexType(), i32 = b.getI32Type();
  Value rows = cast(i32, countRows(b, own)), number = cast(i32, item);
  row = cast(index, arith::RemUIOp::create(b, number, rows));
  Value perSum = own.index32(offsetof(nsg_slot, pieces_per_sum));
  Value sumOfRow = cast(index, arith::DivUIOp::create(b, number, rows));
  Value before = arith::MulIOp::create(b, sumOfRow, perSum);
  Value left = arith::SubIOp::create(
      b, own.index32(offsetof(nsg_slot, num_pieces)), before);
  numPieces = arith::MinUIOp::create(b, perSum, left);
  firstPiece = arith::AddIOp::create(
      b, own.index32(offsetof(nsg_slot, first_piece)), before);
}

Value PieceInputs::countPieces(Value) { return numPieces; }

Span PieceInputs::getPiece(Value, Value number) {
  Value stride = sorted.index(offsetof(nsg_sorted, partial_stride));
  Value piece = arith::AddIOp::create(b, firstPiece, number);
  Value place =
      arith::AddIOp::create(b, arith::MulIOp::create(b, piece, stride), row);
  Value starts = sorted.array(offsetof(nsg_sorted, starts),
                              getFlatType(b.getI32Type()), /*invariant=*/true);
  Value next = arith::AddIOp::create(b, place, makeIndex(b, 1));
  return {loadIndex(b, starts, place), loadIndex(b, starts, next)};
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value SumInputs::countSums() {
  return slot.index32(offsetof(nsg_slot, num_sums));
}

/// Whether some sum of the row has gradients. Reads several counts at once, the
/// last one again if there are fewer.
Value SumInputs::hasGradients() {
  Value count = countSums();
  Value last = arith::SubIOp::create(b, count, makeIndex(b, 1));
  Value none = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Value counts = slot.array(offsetof(nsg_slot, norms),
                            getFlatType(b.getF32Type()), /*invariant=*/true);
  auto loop =
      scf::ForOp::create(b, makeIndex(b, 0), count,
                         makeIndex(b, kCountsInFlight), ValueRange{none});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> read;
  for (int64_t i = 0; i < kCountsInFlight; ++i) {
    Value sum = loop.getInductionVar();
    if (i > 0)
      sum = arith::MinUIOp::create(
          b, arith::AddIOp::create(b, sum, makeIndex(b, i)), last);
    read.push_back(memref::LoadOp::create(b, counts, getGradientOffset(sum)));
  }
  Value total = loop.getRegionIterArgs()[0];
  for (Value value : read)
    total = arith::AddFOp::create(b, total, value);
  scf::YieldOp::create(b, total);
  b.setInsertionPointAfter(loop);
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, loop.getResult(0),
                               none);
}

void SumInputs::forEachItem(llvm::function_ref<void(Value)> emit) {
  auto branch = scf::IfOp::create(b, hasGradients(), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emit(row);
}

Span SumInputs::getRun(Value) { return {makeIndex(b, 0), countSums()}; }

Value SumInputs::getGradientOffset(Value sum) {
  Value before = arith::MulIOp::create(b, sum, countRows(b, slot));
  return arith::AddIOp::create(b, before, row);
}

} // namespace neuroshard
