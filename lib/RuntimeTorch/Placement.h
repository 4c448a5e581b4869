//===- Placement.h - Device of a session's tensors --------------*- C++ -*-===//
//
// The caller of a session has tensors on a device of torch, functions of the
// artifact have theirs in memory of a device of the runtime. They are the same
// on CPUs and GPUs; the emulator takes and gives copies of tensors on the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_PLACEMENT_H
#define NEUROSHARD_LIB_RUNTIMETORCH_PLACEMENT_H

#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

namespace neuroshard::runtime {

class Placement {
public:
  /// `device`: "cpu", "cuda", "cuda:1", or "emulator".
  explicit Placement(const std::string &device);

  /// Of the caller's tensors.
  c10::Device place() const { return torchDevice; }
  /// Whether functions run on threads of the host.
  bool isHost() const { return kind == Kind::Host; }
  /// Whether functions read and write copies of the caller's tensors.
  bool makesCopies() const { return kind == Kind::Emulator; }

  /// For the artifact in `directory`; null on CPUs, which check ids early.
  /// Throws a ValueError.
  std::unique_ptr<BackendFactory> makeBackends(const std::string &directory,
                                               IdCheck check) const;

  /// Functions that are called next follow the caller's current stream.
  void followStream(nsrt_device *device) const;
  /// `tensor` as functions read it; it must be contiguous if makesCopies().
  at::Tensor toFunction(nsrt_device *device, const at::Tensor &tensor) const;
  /// `tensor`, which functions wrote, as the caller reads it.
  at::Tensor toCaller(nsrt_device *device, at::Tensor tensor) const;

private:
  enum class Kind { Host, Gpu, Emulator };

  std::string name;
  Kind kind;
  c10::Device torchDevice;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_PLACEMENT_H
