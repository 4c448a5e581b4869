//===- IdPayload.h - Layout of the ids of a message -------------*- C++ -*-===//
//
// The bytes one device sends to one destination for one StreamSet:
//   i32 length of each bag of each pooled stream (stream-major),
//   ids, stream after stream,
//   f32 weights of each weighted stream;
// each of the three parts begins at a multiple of 8 bytes. Kernels read ids and
// weights where they are.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_IDPAYLOAD_H
#define NEUROSHARD_ARTIFACT_IDPAYLOAD_H

#include "neuroshard/Artifact/ExchangeLayout.h"

#include <cstddef>
#include <span>
#include <vector>

namespace neuroshard {

/// Byte offsets of the parts of a payload.
class IdPayload {
public:
  /// From a rank. `idsOfStream`: how many ids it has for each stream; those of
  /// streams that it is no reader of do not travel.
  IdPayload(const StreamSet &set, int64_t rank, int64_t batch, int32_t idBytes,
            std::span<const int64_t> idsOfStream);

  int64_t bytes() const { return totalBytes; }

  /// Of a pooled stream.
  int64_t lengths(size_t stream) const { return lengthsOffset[stream]; }
  int64_t ids(size_t stream) const { return idsOffset[stream]; }
  /// Of a weighted stream.
  int64_t weights(size_t stream) const { return weightsOffset[stream]; }

private:
  std::vector<int64_t> lengthsOffset;
  std::vector<int64_t> idsOffset;
  std::vector<int64_t> weightsOffset;
  int64_t totalBytes = 0;
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_IDPAYLOAD_H
