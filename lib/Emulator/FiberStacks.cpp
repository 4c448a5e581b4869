//===- FiberStacks.cpp - Stacks of the threads of a block -----------------===//
//
// One mapping for all stacks: guard, stack, guard, stack, ...
//
//===----------------------------------------------------------------------===//

#include "FiberStacks.h"

#include <new>
#include <sys/mman.h>

namespace neuroshard::emulator {

namespace {
constexpr size_t kPageBytes = 4096;
constexpr size_t kGuardBytes = 16 * kPageBytes; // pages may have 64 KiB
/// Enough for kernels that are compiled without optimisation.
constexpr size_t kStackBytes = 512 * 1024;
constexpr size_t kSlotBytes = kGuardBytes + kStackBytes;
/// Fibers begin at different offsets within a page: at equal ones, the few
/// lines that each uses would compete for the same sets of the cache.
constexpr size_t kColours = 32;
constexpr size_t kColourBytes = 128;
} // namespace

FiberStacks::~FiberStacks() { release(); }

void FiberStacks::release() {
  if (memory)
    munmap(memory, size);
  memory = nullptr;
  size = 0;
}

void FiberStacks::reserve(size_t count) {
  if (count * kSlotBytes > size) {
    release();
    void *address = mmap(nullptr, count * kSlotBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
      throw std::bad_alloc();
    memory = static_cast<std::byte *>(address);
    size = count * kSlotBytes;
    for (size_t i = 0; i < count; ++i)
      if (mprotect(memory + i * kSlotBytes, kGuardBytes, PROT_NONE) != 0) {
        release();
        throw std::bad_alloc();
      }
  }
}

std::span<std::byte> FiberStacks::getStack(size_t index) const {
  return {memory + index * kSlotBytes + kGuardBytes,
          kStackBytes - index % kColours * kColourBytes};
}

bool FiberStacks::isGuard(const void *address) const {
  auto *byte = static_cast<const std::byte *>(address);
  return memory && byte >= memory && byte < memory + size &&
         static_cast<size_t>(byte - memory) % kSlotBytes < kGuardBytes;
}

} // namespace neuroshard::emulator
