//===- Devices.cpp - Opens an artifact on devices -------------------------===//
//
// The libraries for GPUs lie beside the runtime and are loaded when they are
// asked for.
//
//===----------------------------------------------------------------------===//

#include "Devices.h"

#include "neuroshard/Runtime/OpenOn.h"
#include "neuroshard/RuntimeCuda/Backends.h"

#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>

namespace neuroshard::run {
namespace {

namespace fs = std::filesystem;

/// The folder of the runtime's library.
fs::path libraryFolder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&nsrt_world_open), &info))
    throw std::runtime_error("cannot find the file of the runtime");
  return fs::absolute(info.dli_fname).parent_path();
}

template <typename Function> Function *find(void *library, const char *symbol) {
  void *address = dlsym(library, symbol);
  if (!address)
    throw std::runtime_error(dlerror());
  return reinterpret_cast<Function *>(address);
}

nsrt_world *openOnGpus(const std::string &directory, int32_t threads,
                       bool isEmulated) {
  fs::path folder = libraryFolder();
  void *library =
      dlopen((folder / "libneuroshard_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw std::runtime_error(std::string("no runtime for GPUs: ") + dlerror());
  auto *make = find<decltype(nsc_make_backends)>(library, "nsc_make_backends");
  auto *release =
      find<decltype(nsc_free_backends)>(library, "nsc_free_backends");
  auto *lastError = find<decltype(nsc_last_error)>(library, "nsc_last_error");
  fs::path emulator = folder / "libneuroshard_emulator.so";
  runtime::BackendFactory *backends =
      make(directory.c_str(), isEmulated ? emulator.c_str() : nullptr);
  if (!backends)
    throw std::runtime_error(lastError(nullptr));
  nsrt_world *world = nsrt_world_open_on(directory.c_str(), threads, backends);
  release(backends);
  return world;
}

} // namespace

std::vector<std::string> deviceNames() { return {"cpu", "cuda", "emulator"}; }

Memory memoryOf(const std::string &device, const FunctionSpec &function) {
  return device == "cpu" || function.touchesTensors ? Memory::Host
                                                    : Memory::Device;
}

World openWorld(const std::string &directory, int32_t threadsPerDevice,
                const std::string &device) {
  World world(device == "cpu"
                  ? nsrt_world_open(directory.c_str(), threadsPerDevice)
                  : openOnGpus(directory, threadsPerDevice,
                               /*isEmulated=*/device == "emulator"));
  if (!world)
    throw std::runtime_error(nsrt_last_error());
  return world;
}

} // namespace neuroshard::run
