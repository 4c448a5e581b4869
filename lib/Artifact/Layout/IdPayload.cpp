//===- IdPayload.cpp - Layout of the ids of a message ---------------------===//

#include "neuroshard/Artifact/IdPayload.h"

#include <cstring>
#include <numeric>

namespace neuroshard {

namespace {
int64_t alignTo8(int64_t bytes) { return (bytes + 7) / 8 * 8; }
} // namespace

IdPayload::IdPayload(const StreamSet &set, int64_t batch, int32_t idBytes)
    : set(&set), batch(batch), idBytes(idBytes), headOffset(set.streams.size()),
      idsOffset(set.streams.size()), weightsOffset(set.streams.size()) {
  for (size_t i = 0; i < set.streams.size(); ++i)
    if (!set.streams[i].pooled) {
      headOffset[i] = totalBytes;
      totalBytes += static_cast<int64_t>(sizeof(int64_t));
    }
  for (size_t i = 0; i < set.streams.size(); ++i)
    if (set.streams[i].pooled) {
      headOffset[i] = totalBytes;
      totalBytes += batch * static_cast<int64_t>(sizeof(int32_t));
    }
  totalBytes = alignTo8(totalBytes);
}

void IdPayload::placeIds(const std::vector<int64_t> &idsOfStream) {
  for (size_t i = 0; i < idsOfStream.size(); ++i) {
    idsOffset[i] = totalBytes;
    totalBytes += idsOfStream[i] * idBytes;
  }
  totalBytes = alignTo8(totalBytes);
  for (size_t i = 0; i < idsOfStream.size(); ++i)
    if (set->streams[i].weighted) {
      weightsOffset[i] = totalBytes;
      totalBytes += idsOfStream[i] * static_cast<int64_t>(sizeof(float));
    }
  totalBytes = alignTo8(totalBytes);
}

std::vector<int64_t> IdPayload::readCounts(const std::byte *payload) const {
  std::vector<int64_t> counts(set->streams.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    if (set->streams[i].pooled) {
      const int32_t *begin = lengths(payload, i);
      counts[i] = std::accumulate(begin, begin + batch, int64_t{0});
    } else {
      std::memcpy(&counts[i], payload + headOffset[i], sizeof(int64_t));
    }
  }
  return counts;
}

int64_t *IdPayload::count(std::byte *payload, size_t stream) const {
  return reinterpret_cast<int64_t *>(payload + headOffset[stream]);
}

int32_t *IdPayload::lengths(std::byte *payload, size_t stream) const {
  return reinterpret_cast<int32_t *>(payload + headOffset[stream]);
}

std::byte *IdPayload::ids(std::byte *payload, size_t stream) const {
  return payload + idsOffset[stream];
}

float *IdPayload::weights(std::byte *payload, size_t stream) const {
  return reinterpret_cast<float *>(payload + weightsOffset[stream]);
}

const int32_t *IdPayload::lengths(const std::byte *payload,
                                  size_t stream) const {
  return reinterpret_cast<const int32_t *>(payload + headOffset[stream]);
}

const std::byte *IdPayload::ids(const std::byte *payload, size_t stream) const {
  return payload + idsOffset[stream];
}

const float *IdPayload::weights(const std::byte *payload, size_t stream) const {
  return reinterpret_cast<const float *>(payload + weightsOffset[stream]);
}

} // namespace neuroshard
