//===- IdPayload.cpp - Layout of the ids of a message ---------------------===//

#include "neuroshard/Artifact/IdPayload.h"

#include "neuroshard/Support/Round.h"

namespace neuroshard {

IdPayload::IdPayload(const StreamSet &set, int64_t batch, int32_t idBytes,
                     std::span<const int64_t> idsOfStream)
    : lengthsOffset(set.streams.size()), idsOffset(set.streams.size()),
      weightsOffset(set.streams.size()) {
  constexpr int64_t kAlignment = 8, kWordBytes = 4;
  for (size_t i = 0; i < set.streams.size(); ++i)
    if (set.streams[i].pooled) {
      lengthsOffset[i] = totalBytes;
      totalBytes += batch * kWordBytes;
    }
  totalBytes = roundUp(totalBytes, kAlignment);
  for (size_t i = 0; i < set.streams.size(); ++i) {
    idsOffset[i] = totalBytes;
    totalBytes += idsOfStream[i] * idBytes;
  }
  totalBytes = roundUp(totalBytes, kAlignment);
  for (size_t i = 0; i < set.streams.size(); ++i)
    if (set.streams[i].weighted) {
      weightsOffset[i] = totalBytes;
      totalBytes += idsOfStream[i] * kWordBytes;
    }
  totalBytes = roundUp(totalBytes, kAlignment);
}

} // namespace neuroshard
