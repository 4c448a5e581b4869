//===- QuantizedRows.cpp - Rows of 8 or 4 bits as f32 ---------------------===//
//
// A value of int8 and int4 is one fused multiply-add of the element, which is
// exact as f32, with the scale and the bias of the row. One of fp8 is exact:
// its bits are those of an f32 whose exponent is too small by 2^120.
//
//===----------------------------------------------------------------------===//

#include "QuantizedRows.h"

#include "neuroshard/Model/RowLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace neuroshard {

namespace {
class Reader {
public:
  Reader(ImplicitLocOpBuilder &b, const RowAddress &address, ElementType format)
      : b(b), address(address), format(format) {}

  Row read(const ColumnBlock &block) {
    if (rowPrefixBytes(format) > 0)
      readScaleAndBias();
    Value first = byteOfBlock(b, block, format);
    return llvm::map_to_vector(block.slices, [&](const Slice &slice) {
      Value byte = b.createOrFold<arith::AddIOp>(
          first, index(rowBytes(slice.offset, format)));
      return format == ElementType::Fp8 ? readFp8(byte, slice.length)
                                        : readScaled(byte, slice.length);
    });
  }

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }

  Value readBytes(Value byte, int64_t count) {
    return vector::TransferReadOp::create(
        b, VectorType::get({count}, b.getI8Type()), address.memref,
        ValueRange{address.row, byte}, /*padding=*/std::nullopt,
        ArrayRef<bool>{true});
  }

  void readScaleAndBias() {
    Value bytes = readBytes(index(0), rowPrefixBytes(format));
    Value halves = vector::BitCastOp::create(
        b, VectorType::get({2}, b.getF16Type()), bytes);
    auto extend = [&](int64_t position) -> Value {
      Value half = vector::ExtractOp::create(b, halves, position);
      return arith::ExtFOp::create(b, b.getF32Type(), half);
    };
    scale = extend(0);
    bias = extend(1);
  }

  /// A vector of `count` i32 from one of bytes.
  Value widen(Value bytes, int64_t count) {
    return arith::ExtUIOp::create(b, VectorType::get({count}, b.getI32Type()),
                                  bytes);
  }
  Value splat(Value vector, int64_t value) {
    auto type = cast<VectorType>(vector.getType());
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(
               type, b.getIntegerAttr(type.getElementType(), value)));
  }

  /// Two to a byte, the first in its low half.
  Value readHalfBytes(Value byte, int64_t count) {
    Value bytes = readBytes(byte, (count + 1) / 2);
    Value low = arith::AndIOp::create(b, bytes, splat(bytes, 15));
    if (count == 1)
      return low;
    Value high = arith::ShRUIOp::create(b, bytes, splat(bytes, 4));
    return vector::InterleaveOp::create(b, low, high);
  }

  Value readScaled(Value byte, int64_t count) {
    Value elements = format == ElementType::Int4 ? readHalfBytes(byte, count)
                                                 : readBytes(byte, count);
    auto type = VectorType::get({count}, b.getF32Type());
    // Signed conversions of small numbers have an instruction on every CPU.
    Value values = arith::SIToFPOp::create(b, type, widen(elements, count));
    return math::FmaOp::create(b, values,
                               vector::BroadcastOp::create(b, type, scale),
                               vector::BroadcastOp::create(b, type, bias));
  }

  Value readFp8(Value byte, int64_t count) {
    Value bits = widen(readBytes(byte, count), count);
    auto shifted = [&](int64_t mask, int64_t by) -> Value {
      Value part = arith::AndIOp::create(b, bits, splat(bits, mask));
      return arith::ShLIOp::create(b, part, splat(bits, by));
    };
    Value f32Bits =
        arith::OrIOp::create(b, shifted(0x80, 24), shifted(0x7f, 20));
    auto type = VectorType::get({count}, b.getF32Type());
    Value small = arith::BitcastOp::create(b, type, f32Bits);
    Value factor = arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, b.getF32FloatAttr(0x1p120f)));
    return arith::MulFOp::create(b, small, factor);
  }

  ImplicitLocOpBuilder &b;
  const RowAddress &address;
  ElementType format;
  Value scale, bias;
};
} // namespace

Row readQuantized(ImplicitLocOpBuilder &b, const RowAddress &address,
                  const ColumnBlock &block, ElementType format) {
  return Reader(b, address, format).read(block);
}

Value byteOfBlock(ImplicitLocOpBuilder &b, const ColumnBlock &block,
                  ElementType format) {
  if (format != ElementType::Int4)
    return block.begin;
  Value two = arith::ConstantIndexOp::create(b, 2);
  return b.createOrFold<arith::DivUIOp>(block.begin, two);
}

} // namespace neuroshard
