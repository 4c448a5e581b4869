//===- Tolerance.cpp - Difference from the unsharded program --------------===//

#include "Tolerance.h"

#include <algorithm>
#include <cmath>

namespace neuroshard::run {
namespace {

/// Bits of a type's fraction, and its least exponent of normal numbers.
struct Precision {
  int bits, leastExponent;
};

Precision precisionOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    break;
  case ElementType::F16:
    return {10, -14};
  case ElementType::BF16:
    return {7, -126};
  case ElementType::Int8:
  case ElementType::Int4:
  case ElementType::Fp8:
    break; // read as f32
  }
  return {23, -126};
}

/// Relative error of a rounding; 0: below what is tolerated anyway. With a
/// scale, relative to the largest value of the row.
double roundingOf(WireFormat format) {
  switch (format) {
  case WireFormat::F32:
    return 0;
  case WireFormat::F16:
    return 0x1p-11;
  case WireFormat::BF16:
    return 0x1p-8;
  case WireFormat::Int8:
    return 0.5 / 127;
  case WireFormat::Fp8:
    return 0x1p-4;
  }
  return 0;
}

double lastPlaceOf(ElementType type, double value) {
  Precision precision = precisionOf(type);
  int exponent = value == 0 || !std::isfinite(value)
                     ? precision.leastExponent
                     : std::max(std::ilogb(value), precision.leastExponent);
  return std::ldexp(1, exponent - precision.bits);
}

} // namespace

double Tolerance::limitAt(ElementType type, double value,
                          double largestValue) const {
  if (given >= 0)
    return given;
  constexpr double kLeast = 1e-5, kRoundings = 8;
  return std::max(kLeast * std::max(1.0, largestValue),
                  kRoundings * roundingOf(travelled) * largestValue) +
         static_cast<double>(roundings) * lastPlaceOf(type, value);
}

WireFormat coarser(WireFormat a, WireFormat b) {
  return roundingOf(a) < roundingOf(b) ? b : a;
}

} // namespace neuroshard::run
