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

/// Bytes in front of the elements of a row: its scale and bias (ElementType).
constexpr int64_t rowPrefixBytes(ElementType type) {
  return type == ElementType::Int8 || type == ElementType::Int4 ? 4 : 0;
}

/// Bytes of one row of `width` elements, without padding.
constexpr int64_t rowBytes(int64_t width, ElementType type) {
  if (!isQuantized(type))
    return width * elementBytes(type);
  return rowPrefixBytes(type) +
         (type == ElementType::Int4 ? (width + 1) / 2 : width);
}

/// Bytes of one stored row, padded to kRowAlignmentBytes.
constexpr int64_t paddedRowBytes(int64_t width, ElementType type) {
  int64_t bytes = rowBytes(width, type) + kRowAlignmentBytes - 1;
  return bytes / kRowAlignmentBytes * kRowAlignmentBytes;
}

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_ROWLAYOUT_H
