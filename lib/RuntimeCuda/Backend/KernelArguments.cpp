//===- KernelArguments.cpp - Uploads arrays that kernels read -------------===//

#include "KernelArguments.h"

#include <algorithm>

namespace neuroshard::cuda {

CUdeviceptr KernelArguments::reserve(int64_t bytes, CUstream stream) {
  if (gpu.isCapturing(stream))
    return ofGraphs.emplace_back(gpu, bytes, "the arguments of kernels")
        .address();
  if (bytes > device.size()) {
    int64_t room = std::max(bytes, device.size() * 2);
    if (device.size() > 0)
      gpu.waitForAll(); // kernels may still read the old memory
    device = {};        // free it first
    device = DeviceBlock(gpu, room, "the arguments of kernels");
  }
  return device.address();
}

void KernelArguments::upload(std::span<const std::byte> bytes,
                             CUstream stream) {
  if (!gpu.isCapturing(stream))
    return ring.upload(device.address(), bytes, stream);
  ring.upload(ofGraphs.back().address(), bytes, uploads.get());
  uploads.wait();
}

} // namespace neuroshard::cuda
