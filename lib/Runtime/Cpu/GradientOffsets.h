//===- GradientOffsets.h - Offsets of the gradients of ids ------*- C++ -*-===//
//
// Kernels address gradients as offsets from one pointer, in floats. That is the
// lowest address of all that they read, whatever messages those are in.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_GRADIENTOFFSETS_H
#define NEUROSHARD_LIB_RUNTIME_CPU_GRADIENTOFFSETS_H

#include "neuroshard/Runtime/Backend.h"

namespace neuroshard::runtime {

/// Floats from `base` to `gradients`, which may lie in another block of memory.
int64_t floatsBetween(const float *base, const float *gradients);

/// Writes one offset for each id; the gradient of item 0 is at `first`, that of
/// the next item `stride` behind it.
void fillGradientOffsets(const PeerIds &ids, int64_t first, int64_t stride,
                         int64_t *offsets);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_GRADIENTOFFSETS_H
