//===- Buffer.h - Memory of a step ------------------------------*- C++ -*-===//

#ifndef NEUROSHARD_RUNTIME_BUFFER_H
#define NEUROSHARD_RUNTIME_BUFFER_H

#include "neuroshard/Artifact/BufferBytes.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace neuroshard::runtime {

/// Memory that a step uses, of its device or of the host; the last owner gives
/// it back. Contents are undefined at first. Work of the device that uses it
/// must have been started before.
using Buffer = std::shared_ptr<std::byte>;

/// Where buffers come from.
class BufferSource {
public:
  virtual ~BufferSource() = default;

  /// At least `bytes` bytes, aligned to 64.
  virtual Buffer acquire(BufferKind kind, int64_t bytes) = 0;
  /// The same for a message that is received, whose bytes nobody counts.
  virtual Buffer take(int64_t bytes) = 0;
};

template <typename T> T *as(const Buffer &buffer) {
  return reinterpret_cast<T *>(buffer.get());
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_BUFFER_H
