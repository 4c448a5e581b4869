//===- FiberSwitch.h - Changing from one stack to another ------*- C++ -*-===//
//
// The registers that a callee must keep, a stack pointer, and nothing else:
// ucontext would ask the operating system for the signal mask each time.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_FIBERSWITCH_H
#define NEUROSHARD_LIB_EMULATOR_FIBERSWITCH_H

#include <cstddef>

namespace neuroshard::emulator {

/// Saves the caller's registers on its stack and that stack's pointer in
/// *from, and goes on where `to` was saved. Returns when somebody switches
/// back to *from.
void switchStacks(void **from, void *to);

/// A stack pointer for switchStacks that begins `entry`, which must not
/// return, on the stack that ends at `top`.
void *prepareStack(std::byte *top, void (*entry)());

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_FIBERSWITCH_H
