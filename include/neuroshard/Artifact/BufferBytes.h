//===- BufferBytes.h - Buffers of a step, by kind ---------------*- C++ -*-===//
//
// What the buffers of a device are for. Runtimes count what they take by these
// kinds, and StepBuffers.h says what they will take.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_BUFFERBYTES_H
#define NEUROSHARD_ARTIFACT_BUFFERBYTES_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace neuroshard {

enum class BufferKind {
  Headers, ///< of the ids: sizes of the messages.
  Places,  ///< of the local ids by bucket, and their numbers by bag.
  SentIds,
  RelayedIds,  ///< what a relay hands out in its group.
  ReceivedIds, ///< what kernels read beside the messages.
  Partials,    ///< results of this device's shards, in f32.
  /// Partials as they are sent, where they are not sent from Partials itself.
  SentResults,
  RelayedResults, ///< the sums that a relay sends on.
  Gradients,      ///< of the local results, packed for their owners.
  /// What kernels read beside the messages.
  ReceivedGradients,
  RelayedGradients,
  Sort,  ///< ids by row, and the places of their gradients. CPUs only.
  Norms, ///< reduced gradients that wait for norms, and the norms.
  /// Gradients of sample weights, of a step that computes them.
  SampleWeights,
  Averages, ///< of copies that drift.
};
inline constexpr size_t kNumBufferKinds = 15;

/// "sent_ids".
const char *bufferName(BufferKind kind);

/// Bytes of one device by kind.
class BufferBytes {
public:
  int64_t &operator[](BufferKind kind) {
    return bytes[static_cast<size_t>(kind)];
  }
  int64_t operator[](BufferKind kind) const {
    return bytes[static_cast<size_t>(kind)];
  }
  bool operator==(const BufferBytes &) const = default;

  /// Alive from the exchange of ids to the end of the step.
  int64_t idBytes() const;
  /// Alive until the results are written.
  int64_t forwardBytes() const;
  /// Alive from the first gradient to the end of the update.
  int64_t backwardBytes() const;

  /// Of a step without gradients.
  void dropBackward();

private:
  int64_t sum(BufferKind first, BufferKind last) const;

  std::array<int64_t, kNumBufferKinds> bytes{};
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_BUFFERBYTES_H
