//===- Placement.cpp - Device of a session's tensors ----------------------===//

#include "Placement.h"

#include "TorchMemory.h"
#include "neuroshard/Runtime/Open.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <utility>

namespace neuroshard::runtime {
namespace {

constexpr char kEmulator[] = "emulator";

/// "cuda" means the current GPU.
c10::Device parseDevice(const std::string &name) {
  c10::Device device(name == kEmulator ? "cpu" : name);
  TORCH_CHECK_VALUE(device.is_cpu() || device.is_cuda(), "there is no device ",
                    name, "; expected \"cpu\", \"cuda\" or \"emulator\"");
  if (device.is_cuda() && !device.has_index())
    return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getDevice();
  return device;
}

int64_t bytesOf(const at::Tensor &tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

} // namespace

Placement::Placement(const std::string &device)
    : torchDevice(parseDevice(device)) {
  kind = device == kEmulator     ? Kind::Emulator
         : torchDevice.is_cuda() ? Kind::Gpu
                                 : Kind::Host;
  name = kind == Kind::Gpu ? torchDevice.str() : device;
}

std::unique_ptr<BackendFactory>
Placement::makeBackends(const std::string &directory, IdCheck check) const {
  if (isHost())
    return nullptr;
  std::unique_ptr<BackendFactory> backends(
      nsrt_make_backends(directory.c_str(), name.c_str(), check));
  TORCH_CHECK_VALUE(backends, nsrt_last_error());
  if (kind == Kind::Gpu)
    backends = allocateWithTorch(std::move(backends), torchDevice);
  return backends;
}

void Placement::followStream(nsrt_device *device) const {
  if (kind != Kind::Gpu)
    return;
  c10::impl::VirtualGuardImpl gpus(c10::DeviceType::CUDA);
  void *stream = gpus.getStream(torchDevice).native_handle();
  TORCH_CHECK(nsrt_device_use_stream(device, stream) == 0, nsrt_last_error());
}

at::Tensor Placement::toFunction(nsrt_device *device,
                                 const at::Tensor &tensor) const {
  if (kind != Kind::Emulator)
    return tensor;
  void *copy = nsrt_tensor_allocate(device, bytesOf(tensor));
  TORCH_CHECK(copy, "the emulator has no memory for ", bytesOf(tensor),
              " bytes");
  at::Tensor result = at::from_blob(
      copy, tensor.sizes(), [copy](void *) { nsrt_tensor_free(copy); },
      tensor.scalar_type());
  TORCH_CHECK(nsrt_tensor_write(device, copy, tensor.const_data_ptr(),
                                bytesOf(tensor)) == 0,
              nsrt_last_error());
  return result;
}

at::Tensor Placement::toCaller(nsrt_device *device, at::Tensor tensor) const {
  if (kind != Kind::Emulator)
    return tensor;
  at::Tensor copy = at::empty(tensor.sizes(), tensor.scalar_type());
  TORCH_CHECK(nsrt_tensor_read(device, copy.mutable_data_ptr(),
                               tensor.const_data_ptr(), bytesOf(tensor)) == 0,
              nsrt_last_error());
  return copy;
}

} // namespace neuroshard::runtime
