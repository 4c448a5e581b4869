//===- IdPayload.cpp - Layout of the ids of a message ---------------------===//

#include "neuroshard/Artifact/IdPayload.h"

#include "neuroshard/Support/Round.h"

namespace neuroshard {

IdPayload::IdPayload(const StreamSet &set, int64_t rank, int64_t batch,
                     int32_t idBytes, std::span<const int64_t> idsOfStream)
    : lengthsOffset(set.streams.size()), idsOffset(set.streams.size()),
      weightsOffset(set.streams.size()) {
  constexpr int64_t kAlignment = 8, kWordBytes = 4;
  auto isSent = [&](size_t i) { return set.streams[i].readers.contains(rank); };
  for (size_t i = 0; i < set.streams.size(); ++i)
    if (set.streams[i].pooled && isSent(i)) {
      lengthsOffset[i] = totalBytes;
      totalBytes += batch * kWordBytes;
    }
  totalBytes = roundUp(totalBytes, kAlignment);
  for (size_t i = 0; i < set.streams.size(); ++i) {
    idsOffset[i] = totalBytes;
    totalBytes += isSent(i) ? idsOfStream[i] * idBytes : 0;
  }
  totalBytes = roundUp(totalBytes, kAlignment);
  for (size_t i = 0; i < set.streams.size(); ++i)
    if (set.streams[i].weighted && isSent(i)) {
      weightsOffset[i] = totalBytes;
      totalBytes += idsOfStream[i] * kWordBytes;
    }
  totalBytes = roundUp(totalBytes, kAlignment);
}

} // namespace neuroshard
