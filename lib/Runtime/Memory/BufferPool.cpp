//===- BufferPool.cpp - Memory of shards and of steps ---------------------===//
//
// Maps pages, and keeps free blocks by size.
//
//===----------------------------------------------------------------------===//

#include "BufferPool.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace neuroshard::runtime {

namespace {
constexpr int64_t kAlignmentBytes = 64;
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kHugePageBytes = 2 << 20;

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
} // namespace

PageBlock::PageBlock(int64_t size) : bytes(size) {
  if (size < 0 || size > std::numeric_limits<int64_t>::max() / 2)
    fail("cannot allocate ", size, " bytes");
  if (size >= kHugePageBytes)
    map();
  else if (size > 0)
    allocate();
}

void PageBlock::allocate() {
  auto rounded = static_cast<size_t>(roundUp(bytes, kAlignmentBytes));
  memory =
      static_cast<std::byte *>(std::aligned_alloc(kAlignmentBytes, rounded));
  if (!memory)
    fail("cannot allocate ", bytes, " bytes");
  std::memset(memory, 0, rounded);
}

void PageBlock::map() {
  // Huge pages begin at multiples of their size, a mapping anywhere.
  mappedBytes =
      static_cast<size_t>(roundUp(bytes, kHugePageBytes) + kHugePageBytes);
  void *address = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    fail("cannot allocate ", bytes, " bytes: ", std::strerror(errno));
  mapping = address;
  memory = reinterpret_cast<std::byte *>(
      roundUp(reinterpret_cast<intptr_t>(mapping), kHugePageBytes));
  // Fails on a system without huge pages, which then uses small ones.
  madvise(memory, static_cast<size_t>(roundUp(bytes, kHugePageBytes)),
          MADV_HUGEPAGE);
}

PageBlock::PageBlock(PageBlock &&other) noexcept { *this = std::move(other); }

PageBlock &PageBlock::operator=(PageBlock &&other) noexcept {
  std::swap(memory, other.memory);
  std::swap(bytes, other.bytes);
  std::swap(mapping, other.mapping);
  std::swap(mappedBytes, other.mappedBytes);
  return *this;
}

PageBlock::~PageBlock() {
  if (mapping)
    munmap(mapping, mappedBytes);
  else
    std::free(memory);
}

PageBlock BufferPool::takeFree(int64_t bytes) {
  auto best = free.lower_bound(bytes);
  // Leave a block that is far too large for a larger request.
  if (best == free.end() || best->first > 4 * bytes)
    return PageBlock();
  PageBlock block = std::move(best->second);
  free.erase(best);
  return block;
}

Buffer BufferPool::acquire(BufferKind kind, int64_t bytes) {
  PageBlock block;
  {
    std::lock_guard lock(mutex);
    asked[kind] += bytes;
    bytes = roundUp(std::max<int64_t>(bytes, 1), kPageBytes);
    block = takeFree(bytes);
  }
  if (!block.data()) {
    // With room to spare: the next batch may have a few more ids.
    block = PageBlock(roundUp(bytes + bytes / 8, kPageBytes));
    std::lock_guard lock(mutex);
    held += block.size();
  }
  std::byte *memory = block.data();
  auto owner = std::make_shared<PageBlock>(std::move(block));
  return Buffer(memory, [pool = shared_from_this(), owner](std::byte *) {
    pool->giveBack(std::move(*owner));
  });
}

void BufferPool::giveBack(PageBlock block) noexcept {
  std::lock_guard lock(mutex);
  int64_t size = block.size();
  try {
    free.emplace(size, std::move(block));
  } catch (const std::bad_alloc &) {
    held -= size; // no memory for a list entry: free the block
  }
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
