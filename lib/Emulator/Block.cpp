//===- Block.cpp - The threads of one block of a kernel -------------------===//
//
// Switches between fibers. The last thread to arrive at a barrier, shuffle or
// vote does the work for all of them. Then any of them may run next.
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include "DeviceMemory.h"

namespace neuroshard::emulator {

namespace {
thread_local Block *currentBlock = nullptr;
} // namespace

Block *Block::getCurrent() { return currentBlock; }

void Block::prepare() {
  uint32_t count = kernel->blockSize;
  stacks.reserve(count);
  if (fibers.size() < count)
    fibers = std::vector<Fiber>(count);
  threads.assign(count, {});
  waiting.assign((count + NSE_WARP - 1) / NSE_WARP, 0);
  runnable.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    fibers[i].begin(stacks.getStack(i), &Block::enterThread);
    runnable[i] = i;
  }
  numFinished = numAtBarrier = 0;
  numSteps = 0;
  faulted = {};
  if (kernel->races)
    kernel->races->beginBlock(index, count);
  error.reset();
}

std::optional<KernelError> Block::run(const Kernel &launched, uint32_t block) {
  kernel = &launched;
  index = block;
  random = SplitMix64(launched.seed ^ (static_cast<uint64_t>(block) + 1) << 20);
  prepare();
  currentBlock = this;
  current = takeRunnable();
  scheduler.switchTo(fibers[current]);
  currentBlock = nullptr;
  if (faulted.signal)
    error = describeFault();
  else if (!error && numFinished < kernel->blockSize)
    error = describeDeadlock();
  // Fibers that never ended leave what the address sanitizer marks on stacks.
  if (error)
    stacks.release();
  return error;
}

void Block::enterThread() {
  Block *block = currentBlock;
  block->fibers[block->current].arrive();
  block->kernel->function(block->kernel->params);
  block->leaveThread();
}

void Block::leaveThread() {
  threads[current].state = State::Finished;
  ++numFinished;
  if (!runnable.empty())
    switchTo(takeRunnable());
  stop();
}

/// Leaves the fiber for good and returns to run().
void Block::stop() {
  fibers[current].switchTo(scheduler);
  __builtin_unreachable();
}

void Block::switchTo(uint32_t thread) {
  Fiber &from = fibers[current];
  current = thread;
  from.switchTo(fibers[thread]);
}

uint32_t Block::takeRunnable() {
  auto position = static_cast<uint32_t>(random.below(runnable.size()));
  uint32_t thread = runnable[position];
  runnable[position] = runnable.back();
  runnable.pop_back();
  return thread;
}

void Block::release(uint32_t thread) {
  threads[thread].state = State::Runnable;
  runnable.push_back(thread);
}

/// Switches to a random runnable thread; the current one may be among them.
void Block::waitForOthers() {
  if (runnable.empty())
    stop();
  uint32_t next = takeRunnable();
  if (next != current)
    switchTo(next);
}

bool Block::haveAllArrived(uint32_t warp, uint32_t mask) const {
  if ((waiting[warp] & mask) != mask)
    return false;
  for (uint32_t left = mask; left; left &= left - 1)
    if (threads[warp * NSE_WARP + __builtin_ctz(left)].mask != mask)
      return false;
  return true;
}

uint64_t Block::meetLanes(WarpOp op, uint32_t mask, uint32_t value,
                          uint32_t offset, uint32_t maskAndClamp) {
  countStep();
  uint32_t warp = current / NSE_WARP, lane = current % NSE_WARP;
  Thread &self = threads[current];
  self.op = op;
  self.mask = mask;
  self.value = value;
  self.offset = offset;
  self.maskAndClamp = maskAndClamp;
  self.state = State::AtWarp;
  if (!(mask >> lane & 1)) {
    reject(current, ", which do not include it");
    stop();
  }
  waiting[warp] |= 1u << lane;
  if (haveAllArrived(warp, mask) && !completeWarpOp(warp, mask))
    stop();
  waitForOthers();
  return self.result;
}

/// Sets the results of all lanes of `mask`. Returns false if they do different
/// operations, or one reads a lane outside of the mask.
bool Block::completeWarpOp(uint32_t warp, uint32_t mask) {
  uint32_t first = warp * NSE_WARP + __builtin_ctz(mask), ballot = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    uint32_t lane = __builtin_ctz(left), thread = warp * NSE_WARP + lane;
    if (threads[thread].op != threads[first].op) {
      reject(thread, ", but " + describeThread(first) + describeWait(first));
      return false;
    }
    ballot |= static_cast<uint32_t>(threads[thread].value != 0) << lane;
  }
  for (uint32_t left = mask; left; left &= left - 1) {
    uint32_t thread = warp * NSE_WARP + __builtin_ctz(left);
    WarpOp op = threads[thread].op;
    if (op == WarpOp::Ballot)
      threads[thread].result = ballot;
    else if (op != WarpOp::Sync && !shuffle(thread))
      return false;
  }
  if (kernel->races && threads[first].op == WarpOp::Sync)
    kernel->races->meetLanes(warp, mask);
  waiting[warp] &= ~mask;
  for (uint32_t left = mask; left; left &= left - 1)
    release(warp * NSE_WARP + __builtin_ctz(left));
  return true;
}

/// Sets the result of one thread by the definition of shfl.sync in the PTX ISA.
/// Returns false if the thread reads a lane outside of the mask.
bool Block::shuffle(uint32_t thread) {
  Thread &self = threads[thread];
  uint32_t lane = thread % NSE_WARP, offset = self.offset & 31;
  uint32_t clamp = self.maskAndClamp & 31;
  uint32_t segment = self.maskAndClamp >> 8 & 31;
  uint32_t first = lane & segment;
  uint32_t last = first | (clamp & ~segment);
  uint32_t source = lane;
  bool valid = false;
  switch (self.op) {
  case WarpOp::ShuffleUp: {
    // For shfl.up `last` is the lowest lane.
    int32_t from = static_cast<int32_t>(lane) - static_cast<int32_t>(offset);
    valid = from >= static_cast<int32_t>(last);
    source = static_cast<uint32_t>(from);
    break;
  }
  case WarpOp::ShuffleDown:
    source = lane + offset;
    valid = source <= last;
    break;
  case WarpOp::ShuffleBfly:
    source = lane ^ offset;
    valid = source <= last;
    break;
  default:
    source = first | (offset & ~segment);
    valid = source <= last;
  }
  if (!valid)
    source = lane;
  if (!(self.mask >> source & 1)) {
    reject(thread, ", and reads lane " + std::to_string(source) +
                       ", which is not among them");
    return false;
  }
  self.result = static_cast<uint64_t>(valid) << 32 |
                threads[thread - lane + source].value;
  return true;
}

void Block::meetBlock() {
  countStep();
  threads[current].state = State::AtBarrier;
  if (++numAtBarrier == kernel->blockSize) {
    numAtBarrier = 0;
    if (kernel->races)
      kernel->races->meetBlock();
    for (uint32_t i = 0; i < kernel->blockSize; ++i)
      release(i);
  }
  waitForOthers();
}

/// Sets an error and returns false for an access beside an allocation or one
/// that races with another.
bool Block::checkAccess(const void *address, size_t bytes,
                        nse_access_kind kind) {
  if (isBesideAllocation(address, bytes)) {
    error = makeError(ErrorKind::IllegalAddress, current,
                      " accesses " + std::to_string(bytes) + " bytes from " +
                          describeAddress(address));
    return false;
  }
  std::optional<std::string> what =
      kernel->races->access(current, address, bytes, kind);
  if (what)
    error = makeError(ErrorKind::Race, current, *what);
  return !what;
}

void Block::stopEndless() {
  error =
      makeError(ErrorKind::Endless, current,
                " takes the last of " + std::to_string(kernel->maximumSteps) +
                    " steps of its block: it seems to run for ever");
  stop();
}

void Block::stopMisaligned(const void *address, size_t bytes,
                           uintptr_t alignment) {
  error =
      makeError(ErrorKind::Misaligned, current,
                " accesses " + std::to_string(bytes) + " bytes, which " +
                    "must begin at a multiple of " + std::to_string(alignment) +
                    ", from " + describeAddress(address));
  stop();
}

void Block::requireDriverMemory(const void *address, size_t bytes) {
  if (isDriverMemory(address, bytes))
    return;
  error = makeError(
      ErrorKind::IllegalAddress, current,
      " accesses " + std::to_string(bytes) +
          " bytes of no memory of the driver: " + describeAddress(address));
  stop();
}

/// Sets an error. The caller must then stop, after it has destroyed its
/// objects: the fiber does not return.
void Block::reject(uint32_t thread, const std::string &what) {
  error =
      makeError(ErrorKind::Convergence, thread, describeWait(thread) + what);
}

void Block::fault(const Fault &happened) {
  faulted = happened;
  stop();
}

} // namespace neuroshard::emulator
