//===- FaultHandler.h - Handler of memory faults in kernels -----*- C++ -*-===//
//
// Turns a SIGSEGV, SIGBUS or SIGFPE of a GPU thread into an error of its block.
// Passes all other such signals to the handlers that were there before.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_FAULTHANDLER_H
#define NEUROSHARD_LIB_EMULATOR_FAULTHANDLER_H

#include <cstddef>
#include <signal.h>
#include <vector>

namespace neuroshard::emulator {

/// Installs the handlers while at least one of these objects lives.
class FaultHandlers {
public:
  FaultHandlers();
  FaultHandlers(const FaultHandlers &) = delete;
  FaultHandlers &operator=(const FaultHandlers &) = delete;
  ~FaultHandlers();
};

/// A stack for the handlers of the calling host thread, since a fiber's stack
/// may have overflowed.
class AlternateStack {
public:
  AlternateStack();
  AlternateStack(const AlternateStack &) = delete;
  AlternateStack &operator=(const AlternateStack &) = delete;
  ~AlternateStack();

private:
  std::vector<std::byte> memory;
  stack_t previous = {};
};

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_FAULTHANDLER_H
