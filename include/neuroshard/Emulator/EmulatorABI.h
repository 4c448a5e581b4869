//===- EmulatorABI.h - Calls of emulated GPU kernels ------------*- C++ -*-===//
//
// The contract between kernels that neuroshard-emulate-gpu made for the CPU
// and libneuroshard_emulator. Plain C. An emulated module exports for each
// kernel `void nsrt_invoke_<kernel>(void **params)`, where params[i] points to
// the value of parameter i, as in cuLaunchKernel; and `const int32_t
// nse_parameters_<kernel>[]`, the bytes of each parameter, then 0.
//
// Every GPU thread is a fiber. Outside of a kernel these functions act as in a
// block of one thread.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_EMULATOR_EMULATORABI_H
#define NEUROSHARD_EMULATOR_EMULATORABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Threads of a warp.
#define NSE_WARP 32

#define NSE_PARAMETERS_PREFIX "nse_parameters_"

/// Positions and sizes in x, the only dimension of kernels.
int64_t nse_thread_id(void);
int64_t nse_block_id(void);
int64_t nse_block_dim(void);
int64_t nse_grid_dim(void);

/// Modes of a shuffle: PTX's shfl.sync.{bfly, up, down, idx}.
enum nse_shuffle_kind {
  NSE_SHUFFLE_BFLY = 0,
  NSE_SHUFFLE_UP = 1,
  NSE_SHUFFLE_DOWN = 2,
  NSE_SHUFFLE_IDX = 3
};

/// shfl.sync: waits until all lanes of `mask` have called it with the same
/// mask. Bits 0 to 31 of the result: the `value` of the lane read; bit 32:
/// whether that lane is within the segment that `mask_and_clamp` describes.
uint64_t nse_shuffle(uint32_t mask, uint32_t value, uint32_t offset,
                     uint32_t mask_and_clamp, int32_t kind);

/// vote.sync.ballot: the lanes of `mask` whose predicate is not 0.
uint32_t nse_ballot(uint32_t mask, uint32_t predicate);

/// bar.warp.sync: waits until all lanes of `mask` have called it with the same
/// mask.
void nse_warp_sync(uint32_t mask);

/// bar.sync 0: waits until all threads of the block have called it.
void nse_barrier(void);

/// How memory is accessed.
enum nse_access_kind {
  NSE_READ = 0,
  NSE_READ_INVARIANT = 1, /* by ld.global.nc, which caches may serve */
  NSE_WRITE = 2,
  NSE_ATOMIC = 3
};

/// Bits of an access kind from here on: log2 of the alignment that the code
/// relies on. GPUs refuse other addresses, CPUs do not.
#define NSE_ALIGNMENT_SHIFT 8

/// Called before an access to memory. `kind` is an nse_access_kind with an
/// alignment, which is checked. If the environment variable
/// NEUROSHARD_EMULATOR_RACES is 1, also finds races and accesses just beside an
/// allocation.
void nse_access(const void *address, int64_t bytes, int32_t kind);

/// Allocates memory as cuMemAlloc does, for test drivers without a context:
/// filled with 0xFF bytes, between guard pages. Null if there is no room.
void *nse_allocate(int64_t bytes);

/// Frees memory of nse_allocate; does nothing for null. Returns another value
/// than 0 if bytes just beside it were written, or it is no such memory.
int32_t nse_free(void *memory);

/// How often a call of the driver has waited for work that was put off
/// (NEUROSHARD_EMULATOR_STREAMS=late).
uint64_t nse_waits(void);

/// For tests that show that streams need their waits for others. From here on
/// drops one of the waits of a stream for another that threads with device 0
/// ask for, by its number from 0 (-1: none). Returns how many of them there
/// were since the last call.
int64_t nse_skip_stream_wait(int64_t number);

/// The message of the calling host thread's latest failed launch or driver
/// call: kernel, block, thread and what it did. "" if there was none. Valid
/// until the next failure in this host thread.
const char *nse_last_error(void);

#ifdef __cplusplus
}
#endif

#endif // NEUROSHARD_EMULATOR_EMULATORABI_H
