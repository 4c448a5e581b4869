//===- FaultHandler.cpp - Handler of memory faults in kernels -------------===//
//
// The handler does not return to the fiber that faulted but switches to the
// scheduler's stack. So it also does what a return would do: it restores the
// mask of signals. The handler itself asks for no blocked signals (SA_NODEFER),
// but the thread sanitizer, which calls it, blocks them all.
//
//===----------------------------------------------------------------------===//

#include "FaultHandler.h"
#include "Block.h"
#include "DeviceMemory.h"

#include <iterator>
#include <mutex>
#include <ucontext.h>

namespace neuroshard::emulator {

namespace {
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
constexpr size_t kNumSignals = std::size(kSignals);
constexpr size_t kSignalStackBytes = 64 * 1024;

std::mutex mutex;
int numUsers = 0;
struct sigaction previousActions[kNumSignals];

bool isWriteAccess([[maybe_unused]] const void *context) {
#if defined(__x86_64__)
  // Bit 1 of the page fault's error code.
  auto *state = static_cast<const ucontext_t *>(context);
  return state->uc_mcontext.gregs[REG_ERR] & 2;
#else
  return false;
#endif
}

/// Calls the previous handler. If there is none, restores the default, so that
/// the instruction runs again and ends the process.
void passOn(int signal, siginfo_t *info, void *context) {
  size_t i = 0;
  while (kSignals[i] != signal)
    ++i;
  const struct sigaction &previous = previousActions[i];
  if (previous.sa_flags & SA_SIGINFO)
    previous.sa_sigaction(signal, info, context);
  else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)
    ::signal(signal, SIG_DFL);
  else
    previous.sa_handler(signal);
}

void handle(int signal, siginfo_t *info, void *context) {
  // A positive code: the signal comes from an instruction, not from a process.
  Block *block = info->si_code > 0 ? Block::getCurrent() : nullptr;
  if (!block)
    return passOn(signal, info, context);
  if (signal == SIGSEGV && showMemory(info->si_addr))
    return; // the instruction runs again
  Fault fault;
  fault.signal = signal;
  fault.address = info->si_addr;
  fault.isWrite = isWriteAccess(context);
  fault.isUnknown = info->si_code == SI_KERNEL || signal == SIGBUS;
  pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t *>(context)->uc_sigmask,
                  nullptr);
  block->fault(fault);
}
} // namespace

FaultHandlers::FaultHandlers() {
  std::lock_guard lock(mutex);
  if (numUsers++ > 0)
    return;
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < kNumSignals; ++i)
    sigaction(kSignals[i], &action, &previousActions[i]);
}

FaultHandlers::~FaultHandlers() {
  std::lock_guard lock(mutex);
  if (--numUsers > 0)
    return;
  for (size_t i = 0; i < kNumSignals; ++i)
    sigaction(kSignals[i], &previousActions[i], nullptr);
}

AlternateStack::AlternateStack() : memory(kSignalStackBytes) {
  stack_t stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, &previous);
}

AlternateStack::~AlternateStack() { sigaltstack(&previous, nullptr); }

} // namespace neuroshard::emulator
