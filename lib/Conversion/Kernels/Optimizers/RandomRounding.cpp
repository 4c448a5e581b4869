//===- RandomRounding.cpp - Stochastic rounding of weights ----------------===//
//
// Random bits are added below the last bit that stays, and all bits below it
// are cleared: the carry rounds up as often as the fraction says. There are no
// vectors of i1, which lanes of GPUs have for masks alone.
//
//===----------------------------------------------------------------------===//

#include "RandomRounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace neuroshard {

namespace {
/// Arithmetic on vectors of bits.
class BitBuilder {
public:
  BitBuilder(ImplicitLocOpBuilder &b, Value like)
      : b(b), floats(cast<VectorType>(like.getType())),
        integers(VectorType::get(floats.getShape(), b.getI32Type())) {}

  Value bitsOf(Value value) {
    return arith::BitcastOp::create(b, integers, value);
  }
  Value floatOf(Value bits) {
    return arith::BitcastOp::create(b, floats, bits);
  }
  Value spread(Value scalar) {
    return vector::BroadcastOp::create(b, integers, scalar);
  }
  Value constant(uint32_t bits) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(integers, llvm::APInt(32, bits)));
  }
  Value constant(float value) {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(floats, value));
  }
  Value combine(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }
  Value keep(Value x, Value mask) { return arith::AndIOp::create(b, x, mask); }
  Value merge(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value multiply(Value x, uint32_t y) {
    return arith::MulIOp::create(b, x, constant(y));
  }
  Value shift(Value x, uint32_t bits) {
    return arith::ShRUIOp::create(b, x, constant(bits));
  }
  /// All ones where `x` is negative, else 0.
  Value spreadSign(Value x) {
    return arith::ShRSIOp::create(b, x, constant(uint32_t{31}));
  }
  Value invert(Value x) { return combine(x, constant(~uint32_t{0})); }

  ImplicitLocOpBuilder &b;

private:
  VectorType floats, integers;
};
} // namespace

/// The finalizer of MurmurHash3 (Appleby): every bit of the input changes every
/// bit of the result with probability about one half.
static Value mix(BitBuilder &bits, Value x) {
  x = bits.combine(x, bits.shift(x, 16));
  x = bits.multiply(x, 0x85ebca6b);
  x = bits.combine(x, bits.shift(x, 13));
  x = bits.multiply(x, 0xc2b2ae35);
  return bits.combine(x, bits.shift(x, 16));
}

/// Of f32, f16 lacks 13 bits of the significand and bf16 16.
static uint32_t lostBits(ElementType element) {
  return (uint32_t{1} << (element == ElementType::BF16 ? 16 : 13)) - 1;
}

/// Infinities and NaNs get no random bits: a carry would change them.
static Value roundNormal(BitBuilder &bits, ElementType element, Value value,
                         Value random) {
  Value exponent = bits.keep(bits.shift(value, 23), bits.constant(0xffu));
  Value isFinite =
      bits.spreadSign(bits.add(exponent, bits.constant(uint32_t(-255))));
  uint32_t lost = lostBits(element);
  Value added = bits.keep(bits.keep(random, bits.constant(lost)), isFinite);
  return bits.keep(bits.add(value, added), bits.constant(~lost));
}

/// Values of f16 below its smallest normal one, 2^-14, are multiples of 2^-24:
/// the nearest one to the value moved by -1/2 to 1/2 of that.
static Value roundSmall(BitBuilder &bits, Value value, Value random) {
  ImplicitLocOpBuilder &b = bits.b;
  Value moved =
      arith::UIToFPOp::create(b, value.getType(), bits.shift(random, 8));
  moved = arith::SubFOp::create(b, moved, bits.constant(0x1p23f));
  moved = arith::MulFOp::create(b, moved, bits.constant(0x1p-48f));
  return bits.bitsOf(arith::AddFOp::create(b, value, moved));
}

static Value roundVector(ImplicitLocOpBuilder &b, ElementType element,
                         Value value, Value gradient, Value seed) {
  BitBuilder bits(b, value);
  Value pattern = bits.bitsOf(value);
  Value random =
      mix(bits, bits.combine(bits.bitsOf(gradient), bits.spread(seed)));
  random = mix(bits, bits.combine(pattern, random));
  Value rounded = roundNormal(bits, element, pattern, random);
  if (element == ElementType::BF16)
    return bits.floatOf(rounded);
  constexpr uint32_t kSmallestNormal = 0x38800000; // 2^-14
  Value size = bits.keep(pattern, bits.constant(0x7fffffffu));
  Value isSmall =
      bits.spreadSign(bits.add(size, bits.constant(-kSmallestNormal)));
  return bits.floatOf(
      bits.merge(bits.keep(roundSmall(bits, value, random), isSmall),
                 bits.keep(rounded, bits.invert(isSmall))));
}

Row roundAtRandom(ImplicitLocOpBuilder &b, ElementType element, const Row &row,
                  const Row &gradient, Value seed) {
  Row rounded;
  for (auto [value, ofGradient] : llvm::zip_equal(row, gradient))
    rounded.push_back(roundVector(b, element, value, ofGradient, seed));
  return rounded;
}

} // namespace neuroshard
