//===- Tolerance.h - Difference from the unsharded program ------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_TOLERANCE_H
#define NEUROSHARD_TOOLS_RUN_TOLERANCE_H

#include "neuroshard/Model/WireType.h"

#include <cstdint>

namespace neuroshard::run {

/// How far values of the sharded and the unsharded program may be apart.
struct Tolerance {
  /// The coarsest format in which values, or what they are made from, have
  /// travelled.
  WireFormat travelled = WireFormat::F32;
  /// How often each value has been rounded to its own type since both programs
  /// had the same: where the values before differ in any bit, each rounding may
  /// take them a unit in the last place apart.
  int64_t roundings = 0;
  /// What the user has given in place of all this; negative: nothing.
  double given = -1;

  /// The largest difference from a value of this type, of a tensor whose values
  /// go up to `largestValue`: 1e-5 (of the largest, if that is above 1), or 8
  /// roundings of the largest to `travelled`; and `roundings` units in the last
  /// place of the value.
  double limitAt(ElementType type, double value, double largestValue) const;
};

/// The format with larger rounding errors.
WireFormat coarser(WireFormat a, WireFormat b);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_TOLERANCE_H
