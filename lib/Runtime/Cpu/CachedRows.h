//===- CachedRows.h - Rows that a batch needs in caches ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_CACHEDROWS_H
#define NEUROSHARD_LIB_RUNTIME_CPU_CACHEDROWS_H

#include "Shards/Shard.h"
#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <memory>
#include <span>

namespace neuroshard::runtime {

/// As Backend::fetchRows.
std::unique_ptr<RowsInUse>
fetchCachedRows(const nsrt_program &program, std::span<const Shard> shards,
                std::span<const CachedLookup> lookups, ThreadPool &threads);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_CACHEDROWS_H
