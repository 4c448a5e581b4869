//===- RowLayout.h - Memory layout of a shard's rows ------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_ROWLAYOUT_H
#define NEUROSHARD_MODEL_ROWLAYOUT_H

#include "neuroshard/Model/Types.h"

#include <cstdint>

namespace neuroshard {

/// Column boundaries inside a table are multiples of this many elements; the
/// last shard may have any width.
inline constexpr int64_t kColumnAlignment = 4;

/// The rows of a shard, and of its optimizer's states per element, start at
/// multiples of this many bytes.
inline constexpr int64_t kRowAlignmentBytes = 16;

/// Bytes of one stored row of `width` elements, padded to kRowAlignmentBytes.
constexpr int64_t paddedRowBytes(int64_t width, ElementType type) {
  int64_t bytes = width * elementBytes(type) + kRowAlignmentBytes - 1;
  return bytes / kRowAlignmentBytes * kRowAlignmentBytes;
}

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_ROWLAYOUT_H
