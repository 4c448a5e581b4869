//===- Fiber.h - A stack with the calls on it ------------------*- C++ -*-===//
//
// Either a GPU thread, or the host thread that runs the GPU threads of a block.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_FIBER_H
#define NEUROSHARD_LIB_EMULATOR_FIBER_H

#include "FiberSwitch.h"
#include "SanitizedStack.h"

#include <cstddef>
#include <span>

namespace neuroshard::emulator {

class Fiber {
public:
  /// The first switch to this fiber calls `entry`, which must call arrive()
  /// first and not return.
  void begin(std::span<std::byte> stack, void (*entry)()) {
    sanitized.begin(stack);
    stackPointer = prepareStack(stack.data() + stack.size(), entry);
  }

  void arrive() { sanitized.arrive(); }

  /// Leaves this fiber, which must be the running one, for another. Returns
  /// when a switch goes back.
  void switchTo(Fiber &next) {
    sanitized.leaveFor(next.sanitized);
    switchStacks(&stackPointer, next.stackPointer);
    sanitized.arrive();
  }

private:
  void *stackPointer = nullptr;
  [[no_unique_address]] SanitizedStack sanitized;
};

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_FIBER_H
