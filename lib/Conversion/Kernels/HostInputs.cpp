//===- HostInputs.cpp - A kernel's arrays on the host ---------------------===//

#include "HostInputs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace neuroshard {

/// Rows ahead that are prefetched: far enough to hide a miss to memory behind
/// the rows in between, near enough that they are not evicted again from the
/// second-level cache, where prefetches of rows go.
static constexpr int64_t kPrefetchRows = 48;

HostInputs::HostInputs(ImplicitLocOpBuilder &b, const HostArrays &arrays)
    : b(b), arrays(arrays) {
  Value one = arith::ConstantIndexOp::create(b, 1);
  lastItem = arith::SubIOp::create(b, arrays.end, one);
  Value bounds = arrays.segments ? arrays.segments : arrays.offsets;
  lastPosition =
      bounds ? arith::SubIOp::create(b, loadIndex(b, bounds, arrays.end), one)
             : lastItem;
}

void HostInputs::forEachItem(llvm::function_ref<void(Value)> emit) {
  Value step = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ParallelOp::create(b, ValueRange{arrays.begin},
                                      ValueRange{arrays.end}, ValueRange{step});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  emit(loop.getInductionVars().front());
}

Span HostInputs::getSpan(Value bounds, Value item) {
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value first = loadIndex(b, bounds, item);
  Value next = arith::AddIOp::create(b, item, one);
  return {first, loadIndex(b, bounds, next)};
}

/// Loads element min(position + kPrefetchRows, last): what an array holds for
/// the row to prefetch, without reading past its end.
Value HostInputs::loadAhead(Value memref, Value position, Value last) {
  Value distance = arith::ConstantIndexOp::create(b, kPrefetchRows);
  Value ahead = arith::AddIOp::create(b, position, distance);
  return loadIndex(b, memref, arith::MinSIOp::create(b, ahead, last));
}

Span HostInputs::getBag(Value item) { return getSpan(arrays.offsets, item); }

Value HostInputs::getId(Value position) {
  return loadIndex(b, arrays.ids, position);
}

Value HostInputs::getIdAhead(Value position) {
  return loadAhead(arrays.ids, position, lastPosition);
}

Value HostInputs::getSampleWeight(Value position) {
  return memref::LoadOp::create(b, arrays.sampleWeights, position);
}

Value HostInputs::getRow(Value item) { return loadIndex(b, arrays.rows, item); }

Value HostInputs::getRowAhead(Value item) {
  return loadAhead(arrays.rows, item, lastItem);
}

Span HostInputs::getRun(Value item) { return getSpan(arrays.segments, item); }

Value HostInputs::getGradientOffset(Value position) {
  return loadIndex(b, arrays.gradientOffsets, position);
}

Value HostInputs::getGradientOffsetAhead(Value position) {
  return loadAhead(arrays.gradientOffsets, position, lastPosition);
}

Value HostInputs::getFactor(Value position) {
  return getSampleWeight(position);
}

} // namespace neuroshard
