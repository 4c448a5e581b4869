//===- IdPayload.h - Layout of the ids of a message -------------*- C++ -*-===//
//
// The bytes one device sends to one destination for one StreamSet:
//   i64 number of ids of each unpooled stream,
//   i32 length of each bag of each pooled stream (stream-major),
//   ids, stream after stream,
//   f32 weights of each weighted stream;
// each of the four parts begins at a multiple of 8 bytes.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_IDPAYLOAD_H
#define NEUROSHARD_ARTIFACT_IDPAYLOAD_H

#include "neuroshard/Artifact/ExchangeLayout.h"

#include <cstddef>
#include <vector>

namespace neuroshard {

/// Byte offsets of the parts of a payload.
class IdPayload {
public:
  /// Places counts and lengths, which depend on the batch alone.
  IdPayload(const StreamSet &set, int64_t batch, int32_t idBytes);

  /// Places ids and weights.
  void placeIds(const std::vector<int64_t> &idsOfStream);

  /// Numbers of ids, read from the counts and lengths of a payload.
  std::vector<int64_t> readCounts(const std::byte *payload) const;

  int64_t bytes() const { return totalBytes; }

  int64_t *count(std::byte *payload, size_t stream) const;
  int32_t *lengths(std::byte *payload, size_t stream) const;
  std::byte *ids(std::byte *payload, size_t stream) const;
  float *weights(std::byte *payload, size_t stream) const;

  // The same for a payload that was received.
  const int32_t *lengths(const std::byte *payload, size_t stream) const;
  const std::byte *ids(const std::byte *payload, size_t stream) const;
  const float *weights(const std::byte *payload, size_t stream) const;

private:
  const StreamSet *set;
  int64_t batch;
  int32_t idBytes;
  std::vector<int64_t> headOffset; ///< count or lengths of each stream.
  std::vector<int64_t> idsOffset;
  std::vector<int64_t> weightsOffset; ///< weighted streams only.
  int64_t totalBytes = 0;
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_IDPAYLOAD_H
