//===- BufferPool.cpp - Memory of shards and of steps ---------------------===//
//
// Page mapping and the pool of step buffers.
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
constexpr int64_t alignmentBytes = 64;
constexpr int64_t pageBytes = 4096;
constexpr int64_t hugePageBytes = 2 << 20;

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
} // namespace

PageBlock::PageBlock(int64_t size) : bytes(size) {
  if (size < 0 || size > std::numeric_limits<int64_t>::max() / 2)
    fail("cannot allocate ", size, " bytes");
  if (size >= hugePageBytes)
    map();
  else if (size > 0)
    allocate();
}

void PageBlock::allocate() {
  auto rounded = static_cast<size_t>(roundUp(bytes, alignmentBytes));
  memory =
      static_cast<std::byte *>(std::aligned_alloc(alignmentBytes, rounded));
  if (!memory)
    fail("cannot allocate ", bytes, " bytes");
  std::memset(memory, 0, rounded);
}

void PageBlock::map() {
  // A huge page begins at a multiple of its size; mappings do not.
  mappedBytes =
      static_cast<size_t>(roundUp(bytes, hugePageBytes) + hugePageBytes);
  void *address = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    fail("cannot allocate ", bytes, " bytes: ", std::strerror(errno));
  mapping = address;
  memory = reinterpret_cast<std::byte *>(
      roundUp(reinterpret_cast<intptr_t>(mapping), hugePageBytes));
  // A kernel without huge pages refuses; small pages work as well.
  madvise(memory, static_cast<size_t>(roundUp(bytes, hugePageBytes)),
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
  std::lock_guard lock(mutex);
  auto best = free.lower_bound(bytes);
  // A block far too large is left for someone who needs it.
  if (best == free.end() || best->first > 4 * bytes)
    return PageBlock();
  PageBlock block = std::move(best->second);
  free.erase(best);
  return block;
}

Buffer BufferPool::acquire(int64_t bytes) {
  bytes = roundUp(std::max<int64_t>(bytes, 1), pageBytes);
  PageBlock block = takeFree(bytes);
  if (!block.data()) {
    // Room to spare: the next batch has a few more ids.
    block = PageBlock(roundUp(bytes + bytes / 8, pageBytes));
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
    held -= size; // not even a list entry is to be had: let the block go
  }
}

int64_t BufferPool::heldBytes() const {
  std::lock_guard lock(mutex);
  return held;
}

} // namespace neuroshard::runtime
