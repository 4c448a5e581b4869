//===- Open.h - Opens artifacts on devices and in groups --------*- C++ -*-===//
//
// For worlds whose kernels do not run on the threads of the host, and for those
// whose devices are in several processes, one each. C++, since the caller
// passes backends and the communicator that connects the ranks.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_OPEN_H
#define NEUROSHARD_RUNTIME_OPEN_H

#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/DriverABI.h"

/// Makes backends for the artifact in `directory` on `device`:
///   "cuda"      the machine's GPUs; ranks take turns where there are fewer,
///   "cuda:1"    this GPU for all ranks,
///   "emulator"  GPUs that are threads of the host.
/// Loads the library for GPUs, which lies beside that of the runtime. With late
/// checks a single device reads ids in place, so that the host waits for
/// nothing in a step. Null on failure; nsrt_last_error says why.
extern "C" neuroshard::runtime::BackendFactory *nsrt_make_backends(
    const char *directory, const char *device,
    neuroshard::runtime::IdCheck check = neuroshard::runtime::IdCheck::Early);

/// Null is allowed.
extern "C" void nsrt_free_backends(neuroshard::runtime::BackendFactory *);

/// As nsrt_world_open, with the backends that `backends` makes; null: those of
/// the host. It must live until this function returns, and its library until
/// the world is closed. `tier_directory`: where the files of shards in tier
/// "ssd" are made; null or "": the one that NEUROSHARD_TIER_DIRECTORY names in
/// the environment.
extern "C" nsrt_world *
nsrt_world_open_on(const char *directory, int32_t threads_per_device,
                   neuroshard::runtime::BackendFactory *backends,
                   const char *tier_directory = nullptr);

/// Opens device communicator->rank() of `directory`/manifest.json, whose number
/// of devices must be communicator->size(). Allocates this device's memory
/// only; nsrt_world_device knows no other. Run functions with nsrt_invoke. Read
/// shards through nsrt_device_shard; whole tables cannot be read.
/// nsrt_table_initialize, nsrt_table_write and nsrt_state_write write this
/// rank's part. `backends` and `tier_directory` as above. Takes ownership of
/// the communicator, also on failure: then returns null, and nsrt_last_error
/// says why.
extern "C" nsrt_world *
nsrt_world_join(const char *directory, int32_t threads,
                neuroshard::runtime::Communicator *communicator,
                neuroshard::runtime::BackendFactory *backends,
                const char *tier_directory = nullptr);

#endif // NEUROSHARD_RUNTIME_OPEN_H
