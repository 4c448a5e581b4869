//===- RowBuilder.cpp - Rows as lists of vectors --------------------------===//
//
// Vectors have RowVectors::chunk columns. Those of the rest are masked, or
// powers of two: widths that targets load and add without splitting the vector.
//
//===----------------------------------------------------------------------===//

#include "RowBuilder.h"

#include "Prefetch.h"
#include "QuantizedRows.h"

#include "neuroshard/Model/RowLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace neuroshard {

RowBuilder::RowBuilder(ImplicitLocOpBuilder &b, int64_t dim, ElementType bytes,
                       const RowVectors &shape)
    : b(b), dim(dim), bytes(bytes), shape(shape) {}

Value RowBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

Value RowBuilder::constant(double value) {
  return arith::ConstantOp::create(
      b, b.getF32FloatAttr(static_cast<float>(value)));
}

ColumnBlock RowBuilder::makeBlock(Value begin, int64_t width) {
  ColumnBlock block{begin, {}};
  int64_t offset = 0;
  for (; offset + shape.chunk <= width; offset += shape.chunk)
    block.slices.push_back({offset, shape.chunk, shape.chunk});
  if (shape.isMasked && offset < width) {
    block.slices.push_back({offset, width - offset, shape.chunk});
    return block;
  }
  while (offset < width) {
    int64_t slice = llvm::bit_floor(static_cast<uint64_t>(width - offset));
    block.slices.push_back({offset, slice, slice});
    offset += slice;
  }
  return block;
}

SmallVector<Value> RowBuilder::forEachBlock(
    ValueRange carried,
    llvm::function_ref<SmallVector<Value>(const ColumnBlock &, ValueRange)>
        emit) {
  int64_t fullBlocks = dim / shape.block;
  int64_t rest = dim % shape.block;
  SmallVector<Value> values(carried);
  if (fullBlocks == 1)
    values = emit(makeBlock(index(0), shape.block), values);
  if (fullBlocks > 1) {
    Value first = index(0);
    Value limit = index(fullBlocks * shape.block);
    Value step = index(shape.block);
    auto loop = scf::ForOp::create(b, first, limit, step, values);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next =
        emit(makeBlock(loop.getInductionVar(), shape.block),
             loop.getRegionIterArgs());
    // Without carried values the builder has already made the terminator.
    if (!values.empty())
      scf::YieldOp::create(b, next);
    values = loop.getResults();
  }
  if (rest > 0)
    values = emit(makeBlock(index(dim - rest), rest), values);
  return values;
}

void RowBuilder::forEachBlock(
    llvm::function_ref<void(const ColumnBlock &)> emit) {
  forEachBlock({}, [&](const ColumnBlock &block, ValueRange) {
    emit(block);
    return SmallVector<Value>();
  });
}

Row RowBuilder::zeros(const ColumnBlock &block) {
  return llvm::map_to_vector(block.slices, [&](const Slice &slice) -> Value {
    auto type = VectorType::get({slice.length}, b.getF32Type());
    return arith::ConstantOp::create(b, b.getZeroAttr(type));
  });
}

SmallVector<Value> RowBuilder::indices(const RowAddress &address,
                                       const ColumnBlock &block,
                                       int64_t offset) {
  Value column = b.createOrFold<arith::AddIOp>(block.begin, index(offset));
  if (cast<MemRefType>(address.memref.getType()).getRank() == 2)
    return {address.row, column};
  return {b.createOrFold<arith::AddIOp>(address.row, column)};
}

Value RowBuilder::makeMask(const Slice &slice) {
  if (!slice.isMasked())
    return {};
  return vector::ConstantMaskOp::create(
      b, VectorType::get({slice.length}, b.getI1Type()),
      ArrayRef<int64_t>{slice.width});
}

Row RowBuilder::readStored(const RowAddress &address,
                           const ColumnBlock &block) {
  Type element = cast<MemRefType>(address.memref.getType()).getElementType();
  return llvm::map_to_vector(block.slices, [&](const Slice &slice) -> Value {
    Value mask = makeMask(slice);
    auto read = vector::TransferReadOp::create(
        b, VectorType::get({slice.length}, element), address.memref,
        indices(address, block, slice.offset), /*padding=*/std::nullopt,
        ArrayRef<bool>{true});
    if (mask)
      read.getMaskMutable().assign(mask);
    return read;
  });
}

Row RowBuilder::extend(const Row &stored) {
  return llvm::map_to_vector(stored, [&](Value value) -> Value {
    auto type = cast<VectorType>(value.getType());
    if (type.getElementType().isF32())
      return value;
    return arith::ExtFOp::create(
        b, VectorType::get(type.getShape(), b.getF32Type()), value);
  });
}

static bool isOfBytes(const RowAddress &address) {
  return cast<MemRefType>(address.memref.getType())
      .getElementType()
      .isInteger(8);
}

Row RowBuilder::read(const RowAddress &address, const ColumnBlock &block) {
  if (isOfBytes(address))
    return readQuantized(b, address, block, bytes);
  return extend(readStored(address, block));
}

static Value narrow(ImplicitLocOpBuilder &b, Value value, Type element) {
  if (element.isF32())
    return value;
  auto type = cast<VectorType>(value.getType());
  return arith::TruncFOp::create(b, VectorType::get(type.getShape(), element),
                                 value);
}

Row RowBuilder::rounded(const Row &row, Type element) {
  return extend(llvm::map_to_vector(
      row, [&](Value value) { return narrow(b, value, element); }));
}

void RowBuilder::write(const Row &row, const RowAddress &address,
                       const ColumnBlock &block) {
  Type element = cast<MemRefType>(address.memref.getType()).getElementType();
  for (auto [slice, value] : llvm::zip_equal(block.slices, row)) {
    Value stored = narrow(b, value, element);
    Value mask = makeMask(slice);
    auto write = vector::TransferWriteOp::create(
        b, stored, address.memref, indices(address, block, slice.offset),
        ArrayRef<bool>{true});
    if (mask)
      write.getMaskMutable().assign(mask);
  }
}

void RowBuilder::prefetch(const RowAddress &address, const ColumnBlock &block,
                          bool forWrite) {
  if (!address.row)
    return;
  if (isOfBytes(address))
    return prefetchBytes(address, block, forWrite);
  Type element = cast<MemRefType>(address.memref.getType()).getElementType();
  int64_t step = kCacheLineBytes / (element.getIntOrFloatBitWidth() / 8);
  int64_t width = block.slices.back().offset + block.slices.back().width;
  for (int64_t offset = 0; offset < width; offset += step)
    memref::PrefetchOp::create(b, address.memref,
                               indices(address, block, offset), forWrite,
                               kPrefetchLocality, /*isDataCache=*/true);
}

/// Rows start at multiples of 16 bytes, so that the last byte may lie on one
/// more cache line than there are whole ones.
void RowBuilder::prefetchBytes(const RowAddress &address,
                               const ColumnBlock &block, bool forWrite) {
  int64_t width = block.slices.back().offset + block.slices.back().width;
  int64_t count = rowBytes(width, bytes);
  Value first = byteOfBlock(b, block, bytes);
  SmallVector<int64_t> offsets;
  for (int64_t offset = 0; offset < count; offset += kCacheLineBytes)
    offsets.push_back(offset);
  if (count - offsets.back() > kRowAlignmentBytes)
    offsets.push_back(count - 1);
  for (int64_t offset : offsets)
    memref::PrefetchOp::create(
        b, address.memref,
        ValueRange{address.row,
                   b.createOrFold<arith::AddIOp>(first, index(offset))},
        forWrite, kPrefetchLocality, /*isDataCache=*/true);
}

template <typename Op>
static Row combine(ImplicitLocOpBuilder &b, const Row &lhs, const Row &rhs) {
  Row row;
  for (auto [left, right] : llvm::zip_equal(lhs, rhs))
    row.push_back(Op::create(b, left, right));
  return row;
}

Row RowBuilder::add(const Row &lhs, const Row &rhs) {
  return combine<arith::AddFOp>(b, lhs, rhs);
}

Row RowBuilder::subtract(const Row &lhs, const Row &rhs) {
  return combine<arith::SubFOp>(b, lhs, rhs);
}

Row RowBuilder::multiply(const Row &lhs, const Row &rhs) {
  return combine<arith::MulFOp>(b, lhs, rhs);
}

Row RowBuilder::divide(const Row &lhs, const Row &rhs) {
  return combine<arith::DivFOp>(b, lhs, rhs);
}

Row RowBuilder::squareRoot(const Row &row) {
  return llvm::map_to_vector(row, [&](Value value) -> Value {
    return math::SqrtOp::create(b, value);
  });
}

Row RowBuilder::clamp(const Row &row, Value bound) {
  Row highest = broadcast(bound, row);
  Row lowest = broadcast(arith::NegFOp::create(b, bound), row);
  return combine<arith::MaximumFOp>(
      b, combine<arith::MinimumFOp>(b, row, highest), lowest);
}

Row RowBuilder::broadcast(Value scalar, const Row &like) {
  return llvm::map_to_vector(like, [&](Value value) -> Value {
    return vector::BroadcastOp::create(b, value.getType(), scalar);
  });
}

Row RowBuilder::scale(Value factor, const Row &row) {
  return multiply(broadcast(factor, row), row);
}

Row RowBuilder::addScalar(const Row &row, Value addend) {
  return add(row, broadcast(addend, row));
}

Row RowBuilder::divideByScalar(const Row &row, Value divisor) {
  return divide(row, broadcast(divisor, row));
}

Value RowBuilder::sumColumns(
    llvm::function_ref<Row(const ColumnBlock &)> emit) {
  return sumColumns(1,
                    [&](const ColumnBlock &block) {
                      return SmallVector<Row>{emit(block)};
                    })
      .front();
}

SmallVector<Value> RowBuilder::sumColumns(
    int64_t count,
    llvm::function_ref<SmallVector<Row>(const ColumnBlock &)> emit) {
  SmallVector<Value> lanes;
  if (shape.isMasked || dim >= shape.chunk) {
    auto type = VectorType::get({shape.chunk}, b.getF32Type());
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    lanes.assign(static_cast<size_t>(count), zero);
  }
  // Only the last block, which is never in a loop, has narrower vectors.
  SmallVector<SmallVector<Value>> parts(static_cast<size_t>(count));
  lanes = forEachBlock(lanes, [&](const ColumnBlock &block, ValueRange sums) {
    SmallVector<Value> next(sums);
    for (auto [number, row] : llvm::enumerate(emit(block)))
      for (auto [slice, value] : llvm::zip_equal(block.slices, row)) {
        if (slice.length < shape.chunk) {
          parts[number].push_back(value);
          continue;
        }
        Value sum = arith::AddFOp::create(b, next[number], value);
        if (Value mask = makeMask(slice))
          sum = arith::SelectOp::create(b, mask, sum, next[number]);
        next[number] = sum;
      }
    return next;
  });
  for (auto [number, sum] : llvm::enumerate(lanes))
    parts[number].insert(parts[number].begin(), sum);
  return llvm::map_to_vector(
      parts, [&](ArrayRef<Value> ofRow) { return sumLanes(ofRow); });
}

/// The lanes of each vector, one vector after the other.
Value RowBuilder::sumLanes(ArrayRef<Value> parts) {
  Value total;
  for (Value part : parts) {
    // Without the flag the lanes would be added one after the other.
    Value partial = vector::ReductionOp::create(
        b, vector::CombiningKind::ADD, part, arith::FastMathFlags::reassoc);
    total = total ? arith::AddFOp::create(b, total, partial) : partial;
  }
  return total;
}

void RowBuilder::writeScalar(Value value, Value memref, Value position) {
  auto type = VectorType::get({1}, b.getF32Type());
  vector::TransferWriteOp::create(
      b, vector::BroadcastOp::create(b, type, value), memref,
      ValueRange{position}, ArrayRef<bool>{true});
}

} // namespace neuroshard
