//===- Tolerance.cpp - Difference from the unsharded program --------------===//

#include "Tolerance.h"

#include <algorithm>

namespace neuroshard::run {

/// Relative error of a rounding to the type; 0: below what is tolerated anyway.
static double roundingOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return 0;
  case ElementType::F16:
    return 0x1p-11;
  case ElementType::BF16:
    return 0x1p-8;
  }
  return 0;
}

double toleranceFor(ElementType travelled, double largestValue) {
  constexpr double kLeast = 1e-5, kRoundings = 8;
  return std::max(kLeast, kRoundings * roundingOf(travelled) * largestValue);
}

ElementType coarser(ElementType a, ElementType b) {
  return roundingOf(a) < roundingOf(b) ? b : a;
}

} // namespace neuroshard::run
