//===- HostTensors.h - Tensors that code for CPUs computes on ---*- C++ -*-===//
//
// Functions that touch tensors (FunctionSpec::touchesTensors) have them in
// memory of the host. A device with its own memory gets copies, and gives them
// back.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_ABI_HOSTTENSORS_H
#define NEUROSHARD_LIB_RUNTIME_ABI_HOSTTENSORS_H

#include "Device/Device.h"

namespace neuroshard::runtime {

/// A tensor of the function that runs, as its device reads or writes it.
class DeviceTensor {
public:
  DeviceTensor() = default;
  /// A tensor that the device reads.
  static DeviceTensor read(const Device &device, const void *tensor,
                           int64_t bytes);
  /// A tensor that the device writes: finish() ends it.
  static DeviceTensor write(const Device &device, void *tensor, int64_t bytes);

  /// In memory of the device.
  std::byte *get() const { return copy ? copy.get() : own; }
  /// After the last call that writes it.
  void finish(const Device &device) const;
  /// What must live as long as the device uses get(); null: the tensor itself.
  Buffer takeCopy() { return std::move(copy); }

private:
  std::byte *own = nullptr;
  int64_t bytes = 0;
  Buffer copy;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_ABI_HOSTTENSORS_H
