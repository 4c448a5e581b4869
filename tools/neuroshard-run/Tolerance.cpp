//===- Tolerance.cpp - Difference from the unsharded program --------------===//

#include "Tolerance.h"

#include <algorithm>

namespace neuroshard::run {

double toleranceFor(ElementType wireType, double largestValue) {
  constexpr double kLeast = 1e-5, kRoundings = 8;
  if (wireType == ElementType::F32)
    return kLeast;
  double rounding = wireType == ElementType::BF16 ? 0x1p-8 : 0x1p-11;
  return std::max(kLeast, kRoundings * rounding * largestValue);
}

} // namespace neuroshard::run
