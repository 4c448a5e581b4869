//===- BufferBytes.cpp - Buffers of a step, by kind -----------------------===//

#include "neuroshard/Artifact/BufferBytes.h"

namespace neuroshard {

const char *bufferName(BufferKind kind) {
  static constexpr std::array<const char *, kNumBufferKinds> kNames = {
      "headers",
      "places",
      "sent_ids",
      "relayed_ids",
      "received_ids",
      "partials",
      "sent_results",
      "relayed_results",
      "gradients",
      "received_gradients",
      "relayed_gradients",
      "sort",
      "norms",
      "sample_weights",
      "averages"};
  return kNames[static_cast<size_t>(kind)];
}

int64_t BufferBytes::sum(BufferKind first, BufferKind last) const {
  int64_t total = 0;
  for (auto i = static_cast<size_t>(first); i <= static_cast<size_t>(last); ++i)
    total += bytes[i];
  return total;
}

int64_t BufferBytes::idBytes() const {
  return sum(BufferKind::Headers, BufferKind::ReceivedIds);
}

int64_t BufferBytes::forwardBytes() const {
  return sum(BufferKind::Partials, BufferKind::RelayedResults);
}

void BufferBytes::dropBackward() {
  for (auto i = static_cast<size_t>(BufferKind::Gradients);
       i <= static_cast<size_t>(BufferKind::Averages); ++i)
    bytes[i] = 0;
}

int64_t BufferBytes::backwardBytes() const {
  return sum(BufferKind::Gradients, BufferKind::Averages);
}

} // namespace neuroshard
