//===- BufferPool.cpp - Memory of steps -----------------------------------===//
//
// Keeps free blocks by size.
//
//===----------------------------------------------------------------------===//

#include "BufferPool.h"
#include "Poison.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <new>
#include <utility>

namespace neuroshard::runtime {

static constexpr int64_t kPageBytes = 4096;

PageBlock BufferPool::takeFree(int64_t bytes) {
  auto best = free.lower_bound(bytes);
  // Leave a block that is far too large for a larger request.
  if (best == free.end() || best->first > 4 * bytes)
    return PageBlock();
  PageBlock block = std::move(best->second.block);
  free.erase(best);
  return block;
}

void BufferPool::dropUnused() noexcept {
  std::erase_if(free, [&](const auto &entry) {
    bool isUnused = entry.second.since + kKeptRequests <= requests;
    held -= isUnused ? entry.first : 0;
    return isUnused;
  });
}

Buffer BufferPool::acquire(BufferKind kind, int64_t used) {
  {
    std::lock_guard lock(mutex);
    asked[kind] += used;
  }
  return take(used);
}

Buffer BufferPool::take(int64_t used) {
  int64_t bytes = roundUp(std::max<int64_t>(used, 1), kPageBytes);
  PageBlock block;
  {
    std::lock_guard lock(mutex);
    block = takeFree(bytes);
    if (++requests % kKeptRequests == 0 && !keepsAll)
      dropUnused();
  }
  if (!block.data()) {
    // With room to spare: the next batch may have a few more ids.
    block = PageBlock(roundUp(bytes + bytes / 8, kPageBytes), source);
    std::lock_guard lock(mutex);
    held += block.size();
  }
  allowBytes(block, used);
  std::byte *memory = block.data();
  auto owner = std::make_shared<PageBlock>(std::move(block));
  return Buffer(memory, [pool = shared_from_this(), owner](std::byte *) {
    pool->giveBack(std::move(*owner));
  });
}

void BufferPool::giveBack(PageBlock block) noexcept {
  allowBytes(block, 0);
  std::lock_guard lock(mutex);
  int64_t size = block.size();
  try {
    free.emplace(size, FreeBlock{std::move(block), requests});
  } catch (const std::bad_alloc &) {
    held -= size; // no memory for a list entry: free the block
  }
}

void BufferPool::keepAll() {
  std::lock_guard lock(mutex);
  keepsAll = true;
}

int64_t BufferPool::heldBytes() const {
  std::lock_guard lock(mutex);
  return held;
}

BufferBytes BufferPool::askedBytes() const {
  std::lock_guard lock(mutex);
  return asked;
}

} // namespace neuroshard::runtime
