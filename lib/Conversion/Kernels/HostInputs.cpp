//===- HostInputs.cpp - A kernel's arrays on the host ---------------------===//

#include "HostInputs.h"

#include "Rows/Prefetch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace neuroshard {

static Value getLast(ImplicitLocOpBuilder &b, Value end) {
  return arith::SubIOp::create(b, end, arith::ConstantIndexOp::create(b, 1));
}

/// The last position of items whose positions begin at bounds[item]; the last
/// item where there are no bounds.
static Value getLastPosition(ImplicitLocOpBuilder &b, const HostItems &items,
                             Value bounds) {
  return getLast(b, bounds ? loadIndex(b, bounds, items.end) : items.end);
}

static void emitParallel(ImplicitLocOpBuilder &b, const HostItems &items,
                         llvm::function_ref<void(Value)> emit) {
  Value step = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ParallelOp::create(b, ValueRange{items.begin},
                                      ValueRange{items.end}, ValueRange{step});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  emit(loop.getInductionVars().front());
}

static Span getSpan(ImplicitLocOpBuilder &b, Value bounds, Value item) {
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value first = loadIndex(b, bounds, item);
  Value next = arith::AddIOp::create(b, item, one);
  return {first, loadIndex(b, bounds, next)};
}

/// Loads element min(position + kPrefetchRows, last), which belongs to the row
/// to prefetch.
static Value loadAhead(ImplicitLocOpBuilder &b, Value memref, Value position,
                       Value last) {
  Value distance = arith::ConstantIndexOp::create(b, kPrefetchRows);
  Value ahead = arith::AddIOp::create(b, position, distance);
  return loadIndex(b, memref, arith::MinSIOp::create(b, ahead, last));
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

HostLookupInputs::HostLookupInputs(ImplicitLocOpBuilder &b,
                                   const HostItems &items,
                                   const HostLookupArrays &arrays)
    : b(b), items(items), arrays(arrays),
      lastPosition(getLastPosition(b, items, arrays.offsets)) {}

void HostLookupInputs::forEachItem(llvm::function_ref<void(Value)> emit) {
  emitParallel(b, items, emit);
}

Span HostLookupInputs::getBag(Value item) {
  return getSpan(b, arrays.offsets, item);
}

Value HostLookupInputs::getId(Value position) {
  return loadIndex(b, arrays.ids, position);
}

Value HostLookupInputs::getIdAhead(Value position) {
  return loadAhead(b, arrays.ids, position, lastPosition);
}

Value HostLookupInputs::getSampleWeight(Value position) {
  return memref::LoadOp::create(b, arrays.sampleWeights, position);
}

Value HostLookupInputs::getGradientOffset(Value position) {
  return loadIndex(b, arrays.gradientOffsets, position);
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

HostUpdateInputs::HostUpdateInputs(ImplicitLocOpBuilder &b,
                                   const HostItems &items,
                                   const HostUpdateArrays &arrays)
    : b(b), items(items), arrays(arrays), lastItem(getLast(b, items.end)),
      lastPosition(getLastPosition(b, items, arrays.segments)) {}

void HostUpdateInputs::forEachItem(llvm::function_ref<void(Value)> emit) {
  emitParallel(b, items, emit);
}

Value HostUpdateInputs::getRow(Value item) {
  return loadIndex(b, arrays.rows, item);
}

Value HostUpdateInputs::getRowAhead(Value item) {
  return loadAhead(b, arrays.rows, item, lastItem);
}

Span HostUpdateInputs::getRun(Value item) {
  return getSpan(b, arrays.segments, item);
}

Value HostUpdateInputs::getGradientOffset(Value position) {
  return loadIndex(b, arrays.gradientOffsets, position);
}

Value HostUpdateInputs::getGradientOffsetAhead(Value position) {
  return loadAhead(b, arrays.gradientOffsets, position, lastPosition);
}

Value HostUpdateInputs::getFactor(Value position) {
  return memref::LoadOp::create(b, arrays.sampleWeights, position);
}

} // namespace neuroshard
