//===- LookupTasks.h - Forward kernels as parallel tasks --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_LOOKUPTASKS_H
#define NEUROSHARD_LIB_RUNTIME_CPU_LOOKUPTASKS_H

#include "Shards/Shard.h"
#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Runs the forward kernels of all parts on all threads. If results are not
/// read soon and large together, they bypass the caches.
void runLookups(const nsrt_program &program, std::span<const Shard> slots,
                std::span<const LookupPart> parts, bool isRead,
                ThreadPool &threads);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_LOOKUPTASKS_H
