//===- BufferPool.h - Memory of steps ---------------------------*- C++ -*-===//
//
// Reuses memory, so that after the first steps nothing is allocated or faulted
// in.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_HOST_BUFFERPOOL_H
#define NEUROSHARD_LIB_RUNTIME_HOST_BUFFERPOOL_H

#include "PageBlock.h"
#include "neuroshard/Artifact/BufferBytes.h"
#include "neuroshard/Runtime/Buffer.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace neuroshard::runtime {

/// Reuses memory of the host or of a device, and counts what it is asked for by
/// kind. Work that uses memory of a device is in the order of its stream, so
/// that it may be reused before that work is done. Thread-safe: a receiver may
/// be the last owner of a sender's buffer.
class BufferPool : public BufferSource,
                   public std::enable_shared_from_this<BufferPool> {
public:
  /// Free memory goes back to the system after at least as many requests that
  /// found other memory.
  static constexpr int64_t kKeptRequests = 1024;

  /// Null: of memory of the host.
  explicit BufferPool(std::shared_ptr<DeviceMemory> source = nullptr)
      : source(std::move(source)) {}

  Buffer acquire(BufferKind kind, int64_t used) override;
  Buffer take(int64_t used) override;

  template <typename T> Buffer acquireArray(BufferKind kind, int64_t count) {
    return acquire(kind, count * static_cast<int64_t>(sizeof(T)));
  }

  /// Gives no free memory back any more: graphs use it when they are replayed.
  void keepAll();

  /// Bytes the pool holds, in use or free.
  int64_t heldBytes() const;
  /// Bytes it was asked for since it was made.
  BufferBytes askedBytes() const;

private:
  struct FreeBlock {
    PageBlock block;
    int64_t since; ///< requests before it came back.
  };

  using FreeBlocks = std::multimap<int64_t, FreeBlock>; ///< by size.

  /// A block in use, in its entry of the list, so that giving it back needs no
  /// memory.
  struct Lease {
    std::shared_ptr<BufferPool> pool;
    FreeBlocks::node_type entry;

    ~Lease() { pool->giveBack(std::move(entry)); }
    PageBlock &block() const { return entry.mapped().block; }
  };

  /// The mutex must be held. Empty if there is none.
  FreeBlocks::node_type takeFree(int64_t bytes);
  void dropUnused() noexcept;
  FreeBlocks::node_type makeBlock(int64_t bytes);
  void giveBack(FreeBlocks::node_type entry) noexcept;

  const std::shared_ptr<DeviceMemory> source;
  mutable std::mutex mutex;
  FreeBlocks free;
  int64_t held = 0;
  int64_t requests = 0;
  bool keepsAll = false;
  BufferBytes asked;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_HOST_BUFFERPOOL_H
