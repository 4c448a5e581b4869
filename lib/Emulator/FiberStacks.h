//===- FiberStacks.h - Stacks of the threads of a block --------*- C++ -*-===//
//
// One stack per GPU thread, with an inaccessible guard below it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_FIBERSTACKS_H
#define NEUROSHARD_LIB_EMULATOR_FIBERSTACKS_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace neuroshard::emulator {

class FiberStacks {
public:
  FiberStacks() = default;
  FiberStacks(const FiberStacks &) = delete;
  FiberStacks &operator=(const FiberStacks &) = delete;
  ~FiberStacks();

  /// Makes room for `count` stacks. Contents of stacks are lost. Throws
  /// std::bad_alloc.
  void reserve(size_t count);

  /// Gives all stacks back.
  void release();

  /// Stack `index`. A fiber begins at its end.
  std::span<std::byte> getStack(size_t index) const;

  /// Whether an address is in the guard of a stack.
  bool isGuard(const void *address) const;

private:
  std::byte *memory = nullptr;
  size_t size = 0;
};

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_FIBERSTACKS_H
