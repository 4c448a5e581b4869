//===- Driver.h - State of the emulated CUDA driver -------------*- C++ -*-===//
//
// What the cu* functions share that this library exports in place of libcuda.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_DRIVER_DRIVER_H
#define NEUROSHARD_LIB_EMULATOR_DRIVER_DRIVER_H

#include "Context.h"
#include "StreamQueues.h"

#include <cstdint>
#include <mutex>
#include <set>

namespace neuroshard::cuda {

/// Graphs, which the runtime does not use: callers capture its work.
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;

} // namespace neuroshard::cuda

namespace neuroshard::emulator {

using namespace neuroshard::cuda;

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

inline void *toPointer(CUdeviceptr pointer) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(pointer));
}

/// Success for a stream that was created, and for the default streams.
CUresult checkStream(CUstream stream);

/// Success for a stream of the current context's device. Sets its queue.
CUresult checkCall(CUstream stream, Queue *queue = nullptr);

/// checkContext, and an error if a capture forbids what waits or allocates.
/// Sets the queue of the default stream.
CUresult checkSynchronous(Queue *queue = nullptr);

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_DRIVER_DRIVER_H
