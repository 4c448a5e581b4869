//===- BlockErrors.cpp - Error messages of a block ------------------------===//
//
// Texts say in which kernel, block and thread the error is, and where the
// threads involved were.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "DeviceMemory.h"

#include <csignal>
#include <cstdio>

namespace neuroshard::emulator {

namespace {

std::string describeMask(uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", static_cast<unsigned>(mask));
  return text;
}

const char *describeOp(WarpOp op) {
  switch (op) {
  case WarpOp::Sync:
    return "the warp barrier";
  case WarpOp::ShuffleBfly:
    return "a bfly shuffle";
  case WarpOp::ShuffleUp:
    return "an up shuffle";
  case WarpOp::ShuffleDown:
    return "a down shuffle";
  case WarpOp::ShuffleIdx:
    return "an idx shuffle";
  case WarpOp::Ballot:
    break;
  }
  return "a vote";
}
} // namespace

std::string Block::describeThread(uint32_t thread) const {
  std::string text = "thread ";
  text.append(std::to_string(thread)).append(" (lane ");
  text.append(std::to_string(thread % NSE_WARP)).append(" of warp ");
  return text.append(std::to_string(thread / NSE_WARP)).append(")");
}

/// What a thread waits for, to follow describeThread.
std::string Block::describeWait(uint32_t thread) const {
  const Thread &self = threads[thread];
  if (self.state == State::AtBarrier)
    return " waits at the barrier of the block";
  std::string text = " is at ";
  text.append(describeOp(self.op)).append(" of lanes ");
  return text.append(describeMask(self.mask));
}

/// Why a thread that others wait for does not arrive.
std::string Block::describeMissing(uint32_t thread) const {
  if (thread >= threads.size())
    return "lane " + std::to_string(thread % NSE_WARP) + " of warp " +
           std::to_string(thread / NSE_WARP) + " does not exist";
  return describeThread(thread) + (threads[thread].state == State::Finished
                                       ? " has finished"
                                       : describeWait(thread));
}

KernelError Block::makeError(ErrorKind kind, uint32_t thread,
                             const std::string &what) const {
  std::string text = "kernel ";
  text.append(kernel->name).append(", block ").append(std::to_string(index));
  text.append(": ").append(describeThread(thread)).append(what);
  return {kind, text, index};
}

/// The error when all threads wait: names the first of them, and the first
/// thread that it waits for.
KernelError Block::describeDeadlock() const {
  uint32_t thread = 0;
  while (threads[thread].state == State::Finished)
    ++thread;
  const Thread &self = threads[thread];
  auto waitsFor = [&](uint32_t other) {
    if (self.state == State::AtBarrier)
      return threads[other].state != State::AtBarrier;
    uint32_t lane = other % NSE_WARP;
    if (!(self.mask >> lane & 1))
      return false;
    return other >= threads.size() || threads[other].state != State::AtWarp ||
           threads[other].mask != self.mask;
  };
  bool isBlock = self.state == State::AtBarrier;
  uint32_t other = isBlock ? 0 : thread / NSE_WARP * NSE_WARP;
  while (!waitsFor(other))
    ++other;
  return makeError(ErrorKind::Convergence, thread,
                   describeWait(thread) +
                       " for ever: " + describeMissing(other));
}

KernelError Block::describeFault() const {
  if (faulted.signal == SIGFPE)
    return makeError(ErrorKind::Arithmetic, current,
                     " divides an integer by zero");
  std::string what = faulted.isWrite ? " writes to " : " reads ";
  if (faulted.isUnknown)
    what = " uses a misaligned vector or an address that cannot exist";
  else if (stacks.isGuard(faulted.address))
    what = " needs more stack than the emulator has";
  else
    what += describeAddress(faulted.address);
  return makeError(ErrorKind::IllegalAddress, current, what);
}

} // namespace neuroshard::emulator
