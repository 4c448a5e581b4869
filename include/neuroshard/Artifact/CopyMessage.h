//===- CopyMessage.h - Sums that copies of a shard exchange -----*- C++ -*-===//

#ifndef NEUROSHARD_ARTIFACT_COPYMESSAGE_H
#define NEUROSHARD_ARTIFACT_COPYMESSAGE_H

#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Support/Round.h"

#include <cstdint>

namespace neuroshard {

/// What one copy sends to another: the rows that have gradients, then the sum
/// of each, as a row of values padded to 16 bytes of f32. Both begin at
/// multiples of 16 bytes.
struct CopyMessage {
  int32_t idBytes = 0;
  int64_t width = 0; ///< columns of the shard.
  WireFormat format = WireFormat::F32;

  int64_t stride() const { return paddedColumns(width); }
  int64_t values(int64_t rows) const { return rows * stride(); }
  /// Where the sums begin.
  int64_t sums(int64_t rows) const { return roundUp(rows * idBytes, kAlign); }
  int64_t bytes(int64_t rows) const {
    return sums(rows) + roundUp(values(rows) * valueBytes(format), kAlign);
  }

private:
  static constexpr int64_t kAlign = 16;
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_COPYMESSAGE_H
