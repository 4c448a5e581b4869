//===- Devices.cpp - Opens an artifact on devices -------------------------===//
//===----------------------------------------------------------------------===//

#include "Devices.h"

#include "neuroshard/Runtime/Open.h"

#include <stdexcept>

namespace neuroshard::run {
namespace {

struct FreeBackends {
  void operator()(runtime::BackendFactory *backends) const {
    nsrt_free_backends(backends);
  }
};
using Backends = std::unique_ptr<runtime::BackendFactory, FreeBackends>;

} // namespace

std::vector<std::string> deviceNames() { return {"cpu", "cuda", "emulator"}; }

Memory memoryOf(const std::string &device, const FunctionSpec &function) {
  return device == "cpu" || function.touchesTensors ? Memory::Host
                                                    : Memory::Device;
}

World openWorld(const std::string &directory, int32_t threadsPerDevice,
                const std::string &device, const std::string &tierDirectory) {
  Backends backends;
  if (device != "cpu") {
    backends.reset(nsrt_make_backends(directory.c_str(), device.c_str()));
    if (!backends)
      throw std::runtime_error(nsrt_last_error());
  }
  World world(nsrt_world_open_on(directory.c_str(), threadsPerDevice,
                                 backends.get(), tierDirectory.c_str()));
  if (!world)
    throw std::runtime_error(nsrt_last_error());
  return world;
}

} // namespace neuroshard::run
