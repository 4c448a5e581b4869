//===- PageBlock.cpp - Memory on huge pages -------------------------------===//

#include "PageBlock.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Support/Round.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sys/mman.h>
#include <utility>

namespace neuroshard::runtime {

namespace {
constexpr int64_t kAlignmentBytes = 64;
constexpr int64_t kHugePageBytes = 2 << 20;
} // namespace

PageBlock::PageBlock(int64_t size, std::shared_ptr<DeviceMemory> from)
    : bytes(size), source(std::move(from)) {
  if (size < 0 || size > std::numeric_limits<int64_t>::max() / 2)
    fail("cannot allocate ", size, " bytes");
  if (source)
    memory = size > 0 ? source->allocate(size) : nullptr;
  else if (size >= kHugePageBytes)
    map();
  else if (size > 0)
    allocate();
}

PageBlock PageBlock::reserve(int64_t bytes,
                             std::shared_ptr<DeviceMemory> device) {
  if (!device)
    return PageBlock(bytes);
  PageBlock block;
  block.bytes = bytes;
  block.memory = device->reserve(bytes);
  block.source = std::move(device);
  block.isReserved = true;
  return block;
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
  std::swap(source, other.source);
  std::swap(isReserved, other.isReserved);
  return *this;
}

PageBlock::~PageBlock() {
  if (isReserved)
    source->release(memory);
  else if (source && memory)
    source->free(memory);
  else if (mapping)
    munmap(mapping, mappedBytes);
  else
    std::free(memory);
}

} // namespace neuroshard::runtime
