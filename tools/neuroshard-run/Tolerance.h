//===- Tolerance.h - Difference from the unsharded program ------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_TOLERANCE_H
#define NEUROSHARD_TOOLS_RUN_TOLERANCE_H

#include "neuroshard/Model/WireType.h"

namespace neuroshard::run {

/// The difference that is tolerated by default in values up to `largestValue`:
/// 1e-5, or 8 roundings to the format in which they, or what they are made
/// from, have travelled.
double toleranceFor(WireFormat travelled, double largestValue);

/// The format with larger rounding errors.
WireFormat coarser(WireFormat a, WireFormat b);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_TOLERANCE_H
