//===- BufferPool.cpp - Memory of steps -----------------------------------===//
//
// Keeps free blocks by size.
//
//===----------------------------------------------------------------------===//

#include "BufferPool.h"
#include "Poison.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <utility>

namespace neuroshard::runtime {

BufferPool::FreeBlocks::node_type BufferPool::takeFree(int64_t bytes) {
  auto best = free.lower_bound(bytes);
  // Leave a block that is far too large for a larger request.
  if (best == free.end() || best->first > 4 * bytes)
    return {};
  return free.extract(best);
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
  FreeBlocks::node_type entry;
  {
    std::lock_guard lock(mutex);
    entry = takeFree(bytes);
    if (++requests % kKeptRequests == 0 && !keepsAll)
      dropUnused();
  }
  if (entry.empty())
    entry = makeBlock(bytes);
  auto lease = std::make_shared<Lease>(shared_from_this(), std::move(entry));
  allowBytes(lease->block(), used);
  return Buffer(lease, lease->block().data());
}

/// With room to spare: the next batch may have a few more ids.
BufferPool::FreeBlocks::node_type BufferPool::makeBlock(int64_t bytes) {
  PageBlock block(roundUp(bytes + bytes / 8, kPageBytes), source);
  int64_t size = block.size();
  FreeBlocks made;
  made.emplace(size, FreeBlock{std::move(block), 0});
  std::lock_guard lock(mutex);
  held += size;
  return made.extract(made.begin());
}

void BufferPool::giveBack(FreeBlocks::node_type entry) noexcept {
  allowBytes(entry.mapped().block, 0);
  std::lock_guard lock(mutex);
  entry.mapped().since = requests;
  free.insert(std::move(entry));
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
