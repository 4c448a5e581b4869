//===- Join.h - One rank of a world of processes ---------------*- C++ -*-===//
//
// Opens an artifact in each of several processes, one device each. C++, since
// the caller brings the communicator that connects the ranks.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_JOIN_H
#define NEUROSHARD_RUNTIME_JOIN_H

#include "neuroshard/Runtime/Communicator.h"
#include "neuroshard/Runtime/DriverABI.h"

/// Opens device communicator->rank() of `directory`/manifest.json, whose number
/// of devices must be communicator->size(). Only this device's memory is
/// allocated, and nsrt_world_device knows no other. Functions run by
/// nsrt_invoke; tables are reached through nsrt_device_shard and
/// nsrt_table_initialize, written by nsrt_table_write and nsrt_state_write
/// (each rank takes its own part), and not read as a whole. Takes the
/// communicator, also on failure, which is null and nsrt_last_error.
extern "C" nsrt_world *
nsrt_world_join(const char *directory, int32_t threads,
                neuroshard::runtime::Communicator *communicator);

#endif // NEUROSHARD_RUNTIME_JOIN_H
