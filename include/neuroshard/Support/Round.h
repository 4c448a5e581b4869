//===- Round.h - Rounding of integers to multiples --------------*- C++ -*-===//

#ifndef NEUROSHARD_SUPPORT_ROUND_H
#define NEUROSHARD_SUPPORT_ROUND_H

namespace neuroshard {

/// The least multiple of `multiple` that is not below `value`, which is not
/// negative.
template <typename T> constexpr T roundUp(T value, T multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_ROUND_H
