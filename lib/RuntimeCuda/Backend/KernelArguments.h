//===- KernelArguments.h - Uploads arrays that kernels read -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELARGUMENTS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELARGUMENTS_H

#include "Driver/GpuMemory.h"

#include <cstddef>
#include <span>

namespace neuroshard::cuda {

/// Device memory for the arguments of one launch after the other in one stream.
class KernelArguments {
public:
  KernelArguments(const Gpu &gpu, CUstream stream)
      : gpu(gpu), stream(stream), uploaded(gpu) {}

  /// Makes room for `bytes` and returns where they will be on the GPU. The
  /// kernels of the last upload must have been launched.
  CUdeviceptr reserve(int64_t bytes);
  /// Uploads to the front of the reserved memory.
  void upload(std::span<const std::byte> bytes);

private:
  const Gpu &gpu;
  CUstream stream;
  Event uploaded;
  PinnedBlock host;
  DeviceBlock device;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELARGUMENTS_H
