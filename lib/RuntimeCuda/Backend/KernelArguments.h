//===- KernelArguments.h - Uploads arrays that kernels read -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELARGUMENTS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELARGUMENTS_H

#include "Driver/UploadRing.h"

#include <cstddef>
#include <span>
#include <vector>

namespace neuroshard::cuda {

/// Device memory for the arguments of one launch after the other.
class KernelArguments {
public:
  explicit KernelArguments(const Gpu &gpu) : gpu(gpu), ring(gpu) {}

  /// Makes room for `bytes` and returns where they will be on the GPU. The
  /// kernels of the last upload must have been launched.
  CUdeviceptr reserve(int64_t bytes);
  /// Uploads to the front of the reserved memory, in the order of the stream.
  void upload(std::span<const std::byte> bytes, CUstream stream);

  /// Reserves and uploads an array.
  template <typename T>
  CUdeviceptr put(const std::vector<T> &values, CUstream stream) {
    auto bytes = std::as_bytes(std::span<const T>(values));
    CUdeviceptr address = reserve(static_cast<int64_t>(bytes.size()));
    upload(bytes, stream);
    return address;
  }

private:
  const Gpu &gpu;
  UploadRing ring;
  DeviceBlock device;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELARGUMENTS_H
