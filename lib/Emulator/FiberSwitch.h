//===- FiberSwitch.h - Changing from one stack to another ------*- C++ -*-===//
//
// Saves callee-saved registers and the stack pointer only. ucontext would also
// make a system call for the signal mask on every switch.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_FIBERSWITCH_H
#define NEUROSHARD_LIB_EMULATOR_FIBERSWITCH_H

#include <cstddef>

namespace neuroshard::emulator {

/// Saves the caller's registers on its stack and the stack pointer in *from,
/// and continues where `to` was saved. Returns when a switch goes back to
/// *from.
void switchStacks(void **from, void *to);

/// Returns a stack pointer for switchStacks that calls `entry` on the stack
/// that ends at `top`. `entry` must not return.
void *prepareStack(std::byte *top, void (*entry)());

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_FIBERSWITCH_H
