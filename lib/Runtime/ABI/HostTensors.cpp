//===- HostTensors.cpp - Tensors that code for CPUs computes on -----------===//

#include "HostTensors.h"

namespace neuroshard::runtime {

DeviceTensor DeviceTensor::write(const Device &device, void *tensor,
                                 int64_t bytes) {
  DeviceTensor result;
  result.own = static_cast<std::byte *>(tensor);
  result.bytes = bytes;
  if (device.tensorsOnHost && tensor)
    result.copy = device.buffers->take(bytes);
  return result;
}

DeviceTensor DeviceTensor::read(const Device &device, const void *tensor,
                                int64_t bytes) {
  DeviceTensor result = write(device, const_cast<void *>(tensor), bytes);
  if (result.copy)
    device.write(result.get(), tensor, bytes);
  return result;
}

void DeviceTensor::finish(const Device &device) const {
  if (copy)
    device.read(own, copy.get(), bytes);
}

} // namespace neuroshard::runtime
