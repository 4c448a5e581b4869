//===- EmulatorABI.cpp - Functions that emulated kernels call -------------===//
//
// They act on the block that the calling host thread runs.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Emulator/EmulatorABI.h"

#include "Block.h"
#include "DeviceMemory.h"
#include "Driver/StreamQueues.h"
#include "LastError.h"

#define EXPORT __attribute__((visibility("default")))

using namespace neuroshard::emulator;

extern "C" {

EXPORT int64_t nse_thread_id(void) {
  Block *block = Block::getCurrent();
  return block ? block->getThread() : 0;
}

EXPORT int64_t nse_block_id(void) {
  Block *block = Block::getCurrent();
  return block ? block->getIndex() : 0;
}

EXPORT int64_t nse_block_dim(void) {
  Block *block = Block::getCurrent();
  return block ? block->getKernel().blockSize : 1;
}

EXPORT int64_t nse_grid_dim(void) {
  Block *block = Block::getCurrent();
  return block ? block->getKernel().gridSize : 1;
}

EXPORT uint64_t nse_shuffle(uint32_t mask, uint32_t value, uint32_t offset,
                            uint32_t mask_and_clamp, int32_t kind) {
  static_assert(static_cast<int>(WarpOp::ShuffleIdx) -
                    static_cast<int>(WarpOp::ShuffleBfly) ==
                NSE_SHUFFLE_IDX);
  Block *block = Block::getCurrent();
  if (!block)
    return uint64_t{1} << 32 | value;
  auto op = WarpOp(static_cast<int>(WarpOp::ShuffleBfly) + kind);
  return block->meetLanes(op, mask, value, offset, mask_and_clamp);
}

EXPORT uint32_t nse_ballot(uint32_t mask, uint32_t predicate) {
  Block *block = Block::getCurrent();
  if (!block)
    return predicate != 0;
  return static_cast<uint32_t>(
      block->meetLanes(WarpOp::Ballot, mask, predicate, 0, 0));
}

EXPORT void nse_warp_sync(uint32_t mask) {
  if (Block *block = Block::getCurrent())
    block->meetLanes(WarpOp::Sync, mask, 0, 0, 0);
}

EXPORT void nse_barrier(void) {
  if (Block *block = Block::getCurrent())
    block->meetBlock();
}

EXPORT void nse_access(const void *address, int64_t bytes, int32_t kind) {
  if (Block *block = Block::getCurrent())
    block->access(address, static_cast<size_t>(bytes), kind);
}

EXPORT void *nse_allocate(int64_t bytes) {
  return bytes < 0 ? nullptr : allocateMemory(0, static_cast<size_t>(bytes));
}

EXPORT int32_t nse_free(void *memory) {
  return memory && freeMemory(memory) != FreeResult::Freed;
}

EXPORT uint64_t nse_waits(void) { return countWaits(); }

EXPORT int64_t nse_skip_stream_wait(int64_t number) { return skipWait(number); }

EXPORT const char *nse_last_error(void) { return getLastError().c_str(); }

} // extern "C"
