//===- Tolerance.h - Difference from the unsharded program ------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_TOLERANCE_H
#define NEUROSHARD_TOOLS_RUN_TOLERANCE_H

#include "neuroshard/Model/Types.h"

namespace neuroshard::run {

/// The difference that is tolerated by default in values up to `largestValue`:
/// 1e-5, or 8 roundings to the type in which they, or what they are made from,
/// have travelled.
double toleranceFor(ElementType travelled, double largestValue);

/// The type with larger rounding errors.
ElementType coarser(ElementType a, ElementType b);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_TOLERANCE_H
