//===- KernelArguments.h - Uploads arrays that kernels read -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELARGUMENTS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELARGUMENTS_H

#include "Driver/UploadRing.h"

#include <cstddef>
#include <list>
#include <span>
#include <vector>

namespace neuroshard::cuda {

/// Device memory for the arguments of one launch after the other. A launch that
/// is captured keeps its own.
class KernelArguments {
public:
  explicit KernelArguments(const Gpu &gpu)
      : gpu(gpu), uploads(gpu), ring(gpu) {}

  /// Makes room for `bytes` and returns where they will be on the GPU. The
  /// kernels of the last upload must have been launched on `stream`.
  CUdeviceptr reserve(int64_t bytes, CUstream stream);
  /// Uploads to the front of the reserved memory, in the order of the stream;
  /// while that is captured, at once.
  void upload(std::span<const std::byte> bytes, CUstream stream);

  /// Reserves and uploads an array.
  template <typename T>
  CUdeviceptr put(const std::vector<T> &values, CUstream stream) {
    auto bytes = std::as_bytes(std::span<const T>(values));
    CUdeviceptr address = reserve(static_cast<int64_t>(bytes.size()), stream);
    upload(bytes, stream);
    return address;
  }

private:
  const Gpu &gpu;
  OwnStream uploads;
  UploadRing ring;
  DeviceBlock device;
  std::list<DeviceBlock> ofGraphs; ///< graphs may be replayed at any time.
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELARGUMENTS_H
