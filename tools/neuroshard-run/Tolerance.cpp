//===- Tolerance.cpp - Difference from the unsharded program --------------===//

#include "Tolerance.h"

#include <algorithm>

namespace neuroshard::run {

/// Relative error of a rounding; 0: below what is tolerated anyway.
/// With a scale, relative to the largest value of the row.
static double roundingOf(WireFormat format) {
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

double toleranceFor(WireFormat travelled, double largestValue) {
  constexpr double kLeast = 1e-5, kRoundings = 8;
  return std::max(kLeast, kRoundings * roundingOf(travelled) * largestValue);
}

WireFormat coarser(WireFormat a, WireFormat b) {
  return roundingOf(a) < roundingOf(b) ? b : a;
}

} // namespace neuroshard::run
