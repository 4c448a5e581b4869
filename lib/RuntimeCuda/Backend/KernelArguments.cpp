//===- KernelArguments.cpp - Uploads arrays that kernels read -------------===//

#include "KernelArguments.h"

#include <algorithm>

namespace neuroshard::cuda {

CUdeviceptr KernelArguments::reserve(int64_t bytes) {
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
  ring.upload(device.address(), bytes, stream);
}

} // namespace neuroshard::cuda
