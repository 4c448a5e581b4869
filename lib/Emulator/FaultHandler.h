//===- FaultHandler.h - Handler of memory faults in kernels -----*- C++ -*-===//
//
// Turns a SIGSEGV, SIGBUS or SIGFPE of a GPU thread into an error of its
// block. All other such signals go to whoever had asked for them before.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_FAULTHANDLER_H
#define NEUROSHARD_LIB_EMULATOR_FAULTHANDLER_H

#include <cstddef>
#include <signal.h>
#include <vector>

namespace neuroshard::emulator {

/// While at least one of these lives, the process has our handlers.
class FaultHandlers {
public:
  FaultHandlers();
  FaultHandlers(const FaultHandlers &) = delete;
  FaultHandlers &operator=(const FaultHandlers &) = delete;
  ~FaultHandlers();
};

/// The calling host thread's stack for handlers, since a fiber's own stack may
/// be what is wrong.
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
