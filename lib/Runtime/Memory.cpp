//===- Memory.cpp - Memory of shards and of steps -------------------------===//
//
// Page mapping and the pool of step buffers.
//
//===----------------------------------------------------------------------===//

#include "Memory.h"
#include "Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <sys/mman.h>
#include <utility>

namespace neuroshard::runtime {

namespace {
constexpr int64_t pageBytes = 4096;
constexpr int64_t hugePageBytes = 2 << 20;

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
} // namespace

PageBlock::PageBlock(int64_t size) : bytes(size) {
  if (size == 0)
    return;
  bool huge = size >= hugePageBytes;
  // A huge page begins at a multiple of its size; mappings do not.
  int64_t alignment = huge ? hugePageBytes : pageBytes;
  if (size < 0 || size > std::numeric_limits<int64_t>::max() / 2)
    fail("cannot allocate ", size, " bytes");
  mappedBytes = size_t(roundUp(size, alignment) + (huge ? alignment : 0));
  mapping = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    int code = errno;
    mapping = nullptr;
    fail("cannot allocate ", size, " bytes: ", std::strerror(code));
  }
  auto address = reinterpret_cast<uintptr_t>(mapping);
  memory = reinterpret_cast<std::byte *>(roundUp(int64_t(address), alignment));
  if (huge) // A kernel without huge pages refuses; small pages work as well.
    madvise(memory, size_t(roundUp(size, alignment)), MADV_HUGEPAGE);
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
}

PageBlock BufferPool::takeFree(int64_t bytes) {
  std::lock_guard lock(mutex);
  auto best = free.end();
  for (auto it = free.begin(); it != free.end(); ++it)
    if (it->size() >= bytes &&
        (best == free.end() || it->size() < best->size()))
      best = it;
  // A block far too large is left for someone who needs it.
  if (best == free.end() || best->size() > 4 * bytes)
    return PageBlock();
  PageBlock block = std::move(*best);
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

void BufferPool::giveBack(PageBlock block) {
  std::lock_guard lock(mutex);
  free.push_back(std::move(block));
}

int64_t BufferPool::heldBytes() const {
  std::lock_guard lock(mutex);
  return held;
}

} // namespace neuroshard::runtime
