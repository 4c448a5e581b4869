//===- FiberStacks.h - Stacks of the threads of a block --------*- C++ -*-===//
//
// One stack per GPU thread, with a page below it that nobody may touch.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_FIBERSTACKS_H
#define NEUROSHARD_LIB_EMULATOR_FIBERSTACKS_H

#include <cstddef>
#include <cstdint>

namespace neuroshard::emulator {

class FiberStacks {
public:
  FiberStacks() = default;
  FiberStacks(const FiberStacks &) = delete;
  FiberStacks &operator=(const FiberStacks &) = delete;
  ~FiberStacks();

  /// Makes room for `count` stacks; what is on the stacks is lost. Throws
  /// std::bad_alloc.
  void reserve(size_t count);

  /// The end of stack `index`, where a fiber begins.
  std::byte *getTop(size_t index) const;

  /// True for an address in the page below one of the stacks.
  bool isGuard(const void *address) const;

private:
  void release();

  std::byte *memory = nullptr;
  size_t size = 0;
};

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_FIBERSTACKS_H
