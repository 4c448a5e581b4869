//===- DeviceNames.cpp - Backends by the name of a device -----------------===//
//
// The libraries for GPUs lie beside that of the runtime, are loaded when they
// are asked for, and stay.
//
//===----------------------------------------------------------------------===//

#include "DeviceNames.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/BackendLibrary.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <charconv>
#include <dlfcn.h>
#include <filesystem>
#include <string_view>

namespace fs = std::filesystem;

namespace neuroshard::runtime {
namespace {

constexpr std::string_view kCuda = "cuda";
constexpr std::string_view kEmulator = "emulator";
constexpr int32_t kTakeTurns = -1;

/// The folder of this library.
fs::path libraryFolder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&nsrt_world_open), &info))
    fail("cannot find the file of the runtime");
  return fs::absolute(info.dli_fname).parent_path();
}

decltype(nsc_make_backends) *loadMaker(const fs::path &folder) {
  void *library =
      dlopen((folder / "libneuroshard_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  void *maker = library ? dlsym(library, NSRT_MAKE_BACKENDS_SYMBOL) : nullptr;
  if (!maker)
    fail("no runtime for GPUs: ", dlerror());
  return reinterpret_cast<decltype(nsc_make_backends) *>(maker);
}

/// The GPU that a name "cuda" or "cuda:<number>" means.
int32_t parseGpu(std::string_view device) {
  std::string_view rest = device;
  int32_t gpu = kTakeTurns;
  if (rest.starts_with(kCuda)) {
    rest.remove_prefix(kCuda.size());
    if (rest.empty())
      return gpu;
    if (rest.front() == ':') {
      const char *end = rest.data() + rest.size();
      auto parsed = std::from_chars(rest.data() + 1, end, gpu);
      if (parsed.ec == std::errc() && parsed.ptr == end && gpu >= 0)
        return gpu;
    }
  }
  fail("there is no device \"", device,
       "\"; expected \"cuda\", \"cuda:\" and a number, or \"emulator\"");
}

} // namespace

std::unique_ptr<BackendFactory> makeBackends(const std::string &directory,
                                             const std::string &device,
                                             IdCheck check) {
  fs::path folder = libraryFolder();
  fs::path emulator = folder / "libneuroshard_emulator.so";
  bool isEmulated = device == kEmulator;
  int32_t gpu = isEmulated ? kTakeTurns : parseGpu(device);
  return std::unique_ptr<BackendFactory>(loadMaker(folder)(
      directory.c_str(), isEmulated ? emulator.c_str() : nullptr, gpu, check));
}

} // namespace neuroshard::runtime
