//===- Join.h - Opens one device of an artifact in this process -*- C++ -*-===//
//
// For a world whose devices are in several processes, one each. C++, since the
// caller passes the communicator that connects the ranks.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_JOIN_H
#define NEUROSHARD_RUNTIME_JOIN_H

#include "neuroshard/Runtime/Communicator.h"
#include "neuroshard/Runtime/DriverABI.h"

/// Opens device communicator->rank() of `directory`/manifest.json, whose number
/// of devices must be communicator->size(). Allocates this device's memory
/// only; nsrt_world_device knows no other. Run functions with nsrt_invoke. Read
/// shards through nsrt_device_shard; whole tables cannot be read.
/// nsrt_table_initialize, nsrt_table_write and nsrt_state_write write this
/// rank's part. Takes ownership of the communicator, also on failure: then
/// returns null, and nsrt_last_error says why.
extern "C" nsrt_world *
nsrt_world_join(const char *directory, int32_t threads,
                neuroshard::runtime::Communicator *communicator);

#endif // NEUROSHARD_RUNTIME_JOIN_H
