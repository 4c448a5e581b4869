//===- CudaSums.h - Sums of gradients by row on a GPU -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDASUMS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDASUMS_H

#include "Driver/UploadRing.h"
#include "KernelParts.h"
#include "Step/Device.h"
#include "neuroshard/Runtime/Backend.h"

#include <map>
#include <span>
#include <vector>

namespace neuroshard::cuda {

/// Valid until the device's next update.
class CudaSums : public runtime::DistinctSums {
public:
  /// All arguments but `parts` must outlive it.
  CudaSums(Device &device, runtime::Backend &backend,
           runtime::BufferSource &buffers, UploadRing &uploads, CUstream stream,
           std::span<const runtime::GradientPart> parts);

  int64_t numRows(int32_t slot) const override;
  void writeRows(int32_t slot, int32_t idBytes, std::byte *to) const override;
  const float *sums(int32_t slot) const override;

private:
  Device &device;
  UploadRing &uploads;
  CUstream stream;
  RowStaging staging;
  /// Of the slots with ids.
  std::map<int32_t, std::vector<int64_t>> rows;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDASUMS_H
