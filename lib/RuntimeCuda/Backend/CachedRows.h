//===- CachedRows.h - Rows that a batch needs in caches of a GPU -*- C++ -*-==//
//
// The host knows which rows are where. The ids are copied there, for which it
// waits, and the places of their rows back.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CACHEDROWS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CACHEDROWS_H

#include "Driver/GpuMemory.h"
#include "Step/Binding.h"
#include "neuroshard/Runtime/Backend.h"

#include <memory>
#include <span>

namespace neuroshard::cuda {

class CachedRows {
public:
  /// `host` has the caches. All must outlive it.
  CachedRows(const Gpu &gpu, const Binding &binding, runtime::Backend &host)
      : gpu(gpu), binding(binding), host(host), placesRead(gpu) {}

  /// As Backend::fetchRows.
  std::unique_ptr<runtime::RowsInUse>
  fetch(std::span<const runtime::CachedLookup> lookups, CUstream stream);

private:
  const Gpu &gpu;
  const Binding &binding;
  runtime::Backend &host;
  PinnedBlock ids, places;
  Event placesRead; ///< by the copies of the batch before.
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CACHEDROWS_H
