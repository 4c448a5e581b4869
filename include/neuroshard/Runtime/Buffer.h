//===- Buffer.h - Memory of a step ------------------------------*- C++ -*-===//

#ifndef NEUROSHARD_RUNTIME_BUFFER_H
#define NEUROSHARD_RUNTIME_BUFFER_H

#include <cstddef>
#include <memory>

namespace neuroshard::runtime {

/// Memory of the backend that a step uses; the last owner gives it back.
/// Contents are undefined at first.
using Buffer = std::shared_ptr<std::byte>;

template <typename T> T *as(const Buffer &buffer) {
  return reinterpret_cast<T *>(buffer.get());
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_BUFFER_H
