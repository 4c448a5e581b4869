//===- Round.h - Division and multiples, rounded up -------------*- C++ -*-===//

#ifndef NEUROSHARD_SUPPORT_ROUND_H
#define NEUROSHARD_SUPPORT_ROUND_H

#include <cstdint>

namespace neuroshard {

/// a / b, rounded up; for a >= 0 and b > 0.
constexpr int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The least multiple of `multiple` that is not below `value`, for value >= 0.
constexpr int64_t roundUp(int64_t value, int64_t multiple) {
  return ceilDivide(value, multiple) * multiple;
}

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_ROUND_H
