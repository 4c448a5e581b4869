//===- Context.h - Contexts and errors of the driver ------------*- C++ -*-===//
//
// After a kernel has failed, its context is lost, as with the real driver: all
// calls but those that free something return the kernel's error until the
// context is released as often as it was retained.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_DRIVER_CONTEXT_H
#define NEUROSHARD_LIB_EMULATOR_DRIVER_CONTEXT_H

#include "neuroshard/RuntimeCuda/CudaDriver.h"

#include <string>

/// Marks the functions the library exports.
#define EMULATOR_EXPORT extern "C" __attribute__((visibility("default")))

namespace neuroshard::emulator {

using namespace neuroshard::cuda;

/// Constants that CudaDriver.h lacks, since the runtime does not use them.
inline constexpr CUresult CUDA_ERROR_LAUNCH_TIMEOUT = 702;
inline constexpr CUresult CUDA_ERROR_MISALIGNED_ADDRESS = 716;
inline constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900;
inline constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904;
inline constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905;

/// Sets the calling thread's error text and returns `code`.
CUresult fail(CUresult code, const std::string &text);

/// Success if cuInit was called.
CUresult checkInitialized();

/// Success if cuInit was called and there is such a device.
CUresult checkDevice(CUdevice device);

/// Success if the calling thread has a current context in which no kernel has
/// failed. Sets its device.
CUresult checkContext(int *device = nullptr);

/// Marks the calling thread's context as lost because a kernel failed. Returns
/// `code`.
CUresult loseContext(CUresult code, const std::string &text);

/// Whether the context of a device was retained once more than released.
bool hasOneUser(int device);
/// The last release frees the device's memory.
CUresult releaseContext(int device);

/// Makes the context of a device current while it lives.
class CurrentDevice {
public:
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;
};

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_DRIVER_CONTEXT_H
