//===- Driver.h - State of the emulated CUDA driver -------------*- C++ -*-===//
//
// Contexts, handles and errors behind the cu* functions that this library
// exports in place of libcuda. StreamQueues.h runs the work of streams.
//
// After a kernel has failed, its context is lost, as with the real driver: all
// calls but those that free something return the kernel's error until the
// context is released as often as it was retained.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_DRIVER_H
#define NEUROSHARD_LIB_EMULATOR_DRIVER_H

#include "StreamQueues.h"
#include "neuroshard/RuntimeCuda/CudaDriver.h"

#include <mutex>
#include <set>
#include <string>

/// Marks the functions the library exports.
#define EMULATOR_EXPORT extern "C" __attribute__((visibility("default")))

namespace neuroshard::cuda {

/// Graphs, which the runtime does not use: callers capture its work.
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;

} // namespace neuroshard::cuda

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

/// Makes the context of a device current while it lives.
class CurrentDevice {
public:
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;
};

/// Live handles of one kind.
template <typename Handle> class HandleSet {
public:
  void add(Handle *handle) {
    std::lock_guard lock(mutex);
    handles.insert(handle);
  }
  bool remove(Handle *handle) {
    std::lock_guard lock(mutex);
    return handles.erase(handle) > 0;
  }
  bool contains(Handle *handle) {
    std::lock_guard lock(mutex);
    return handles.count(handle) > 0;
  }

private:
  std::mutex mutex;
  std::set<Handle *> handles;
};

/// Success for a stream that was created, and for the default streams.
CUresult checkStream(CUstream stream);

/// Success for a stream of the current context's device. Sets its queue.
CUresult checkCall(CUstream stream, Queue *queue = nullptr);

/// checkContext, and an error if a capture forbids what waits or allocates.
/// Sets the queue of the default stream.
CUresult checkSynchronous(Queue *queue = nullptr);

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_DRIVER_H
