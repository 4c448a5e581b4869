//===- LateChecks.h - Offsets that kernels check ----------------*- C++ -*-===//
//
// For ids that kernels read in the caller's memory. Ids themselves are checked
// by the kernels that read them (Step/BadIds.h).
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_LATECHECKS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_LATECHECKS_H

#include "Driver/GpuMemory.h"
#include "Routing.h"
#include "neuroshard/Artifact/Manifest.h"

#include <optional>
#include <string>

namespace neuroshard::cuda {

class LateChecks {
public:
  /// All arguments must outlive it.
  LateChecks(const Gpu &gpu, const Manifest &manifest, Routing &routing);

  /// Copies the offsets of all bags if they are right; else bags are empty.
  /// `sizes` gets the number of ids of each bag; or null.
  void trust(int32_t exchange, const runtime::JaggedInput &input,
             int64_t *offsets, float *sizes, CUstream stream);
  /// Waits. What was wrong with offsets since the last call, if anything.
  std::optional<std::string> take(CUstream stream);

private:
  void clear(CUstream stream);

  const Gpu &gpu;
  const Manifest &manifest;
  Routing &routing;
  DeviceBlock words; ///< two of each exchange; see nsg_trust_offsets.
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_LATECHECKS_H
