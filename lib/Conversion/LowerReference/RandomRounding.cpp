//===- RandomRounding.cpp - Stochastic rounding of one weight -------------===//
//
// A value of f16 or bf16 next to the weight, at random: the bits that the type
// lacks are a fraction of the distance between the two, and are compared with
// as many random ones.
//
//===----------------------------------------------------------------------===//

#include "LowerOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace neuroshard {

static Value integer(LoopBuilder &b, Type type, uint64_t value) {
  return arith::ConstantOp::create(
      b, b.getIntegerAttr(type, static_cast<int64_t>(value)));
}

/// x ^ (x >> bits)
static Value foldDown(LoopBuilder &b, Value x, int64_t bits) {
  Value shifted = arith::ShRUIOp::create(b, x, integer(b, x.getType(), bits));
  return arith::XOrIOp::create(b, x, shifted);
}

static Value times(LoopBuilder &b, Value x, uint64_t factor) {
  return arith::MulIOp::create(b, x, integer(b, x.getType(), factor));
}

/// The finalizer of splitmix64, its lower half.
Value seedOfStep(LoopBuilder &b, Value step) {
  Type i64 = b.getI64Type();
  Value x =
      arith::AddIOp::create(b, step, integer(b, i64, 0x9e3779b97f4a7c15u));
  x = times(b, foldDown(b, x, 30), 0xbf58476d1ce4e5b9u);
  x = times(b, foldDown(b, x, 27), 0x94d049bb133111ebu);
  return arith::TruncIOp::create(b, b.getI32Type(), foldDown(b, x, 31));
}

/// The finalizer of MurmurHash3.
static Value mix(LoopBuilder &b, Value x) {
  x = times(b, foldDown(b, x, 16), 0x85ebca6b);
  x = times(b, foldDown(b, x, 13), 0xc2b2ae35);
  return foldDown(b, x, 16);
}

Value roundStochastically(LoopBuilder &b, Value weight, Value gradient,
                          Value seed, Type element) {
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  Value bits = arith::BitcastOp::create(b, i32, weight);
  Value ofGradient = arith::BitcastOp::create(b, i32, gradient);
  Value random = mix(b, arith::XOrIOp::create(b, ofGradient, seed));
  random = mix(b, arith::XOrIOp::create(b, bits, random));

  uint64_t lost = element.isBF16() ? 0xffff : 0x1fff;
  Value mask = integer(b, i32, lost);
  Value added =
      arith::AddIOp::create(b, bits, arith::AndIOp::create(b, random, mask));
  Value cleared =
      arith::AndIOp::create(b, added, integer(b, i32, ~lost & 0xffffffff));
  Value size = math::AbsFOp::create(b, weight);
  Value infinity = arith::ConstantOp::create(
      b, b.getFloatAttr(f32, APFloat::getInf(APFloat::IEEEsingle())));
  Value isFinite =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, size, infinity);
  Value rounded = arith::SelectOp::create(
      b, isFinite, arith::BitcastOp::create(b, f32, cleared), weight);
  if (element.isBF16())
    return rounded;

  // Below the smallest normal value f16 has the multiples of 2^-24.
  Value share = arith::UIToFPOp::create(
      b, f32, arith::ShRUIOp::create(b, random, integer(b, i32, 8)));
  Value moved = b.mul(b.sub(share, b.f32(0x1p23)), b.f32(0x1p-48));
  Value isSmall =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, size, b.f32(0x1p-14));
  return arith::SelectOp::create(b, isSmall, b.add(weight, moved), rounded);
}

} // namespace neuroshard
