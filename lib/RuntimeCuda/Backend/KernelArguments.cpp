//===- KernelArguments.cpp - Uploads arrays that kernels read -------------===//

#include "KernelArguments.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::cuda {

CUdeviceptr KernelArguments::reserve(int64_t bytes) {
  if (bytes > device.size()) {
    int64_t room = std::max(bytes, device.size() * 2);
    if (device.size() > 0)
      gpu.waitForAll(); // kernels may still read the old memory
    device = {};        // free it first
    host = PinnedBlock(gpu, room);
    device = DeviceBlock(gpu, room, "the arguments of kernels");
  }
  return device.address();
}

void KernelArguments::upload(std::span<const std::byte> bytes) {
  uploaded.wait(); // the pinned copy may still be read
  std::memcpy(host.data(), bytes.data(), bytes.size());
  gpu.driver.check(gpu.driver.memcpyHtoDAsync(device.address(), host.data(),
                                              bytes.size(), stream),
                   "uploading the arguments of kernels");
  uploaded.record(stream);
}

} // namespace neuroshard::cuda
