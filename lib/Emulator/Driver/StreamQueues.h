//===- StreamQueues.h - Work of streams, done at once or late ---*- C++ -*-===//
//
// A stream is a queue of work. It is done when it is given; or, if
// NEUROSHARD_EMULATOR_STREAMS is "late", when the host waits for it, and then
// in an order that only streams and events restrict. What lacks an event gives
// wrong results then; races between streams are found in any order
// (StreamRaces.h). Captured work goes into a graph.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_DRIVER_STREAMQUEUES_H
#define NEUROSHARD_LIB_EMULATOR_DRIVER_STREAMQUEUES_H

#include "Accesses.h"
#include "WorkOrder.h"

#include "neuroshard/RuntimeCuda/CudaDriver.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard::emulator {

using cuda::CUresult;

struct Work {
  std::string name; ///< "kernel lookup".
  /// Runs on the device of its queue, whose context is current. Adds its
  /// accesses to memory, if not null.
  std::function<CUresult(Accesses *)> run;
};

struct Graph {
  struct CapturedWork {
    Work work;
    WorkOrder order; ///< within the capture.
  };
  std::vector<CapturedWork> work; ///< in the order in which it was captured.
  /// Those of its launches, by the captured lane.
  std::map<size_t, Lane> lanes;
};

struct Capture;
struct WorkQueue;
using Queue = std::shared_ptr<WorkQueue>;

/// A point in a queue, or in a capture; by default before all work.
struct QueuePoint {
  Queue queue;
  uint64_t position = 0;
  std::shared_ptr<Capture> capture; ///< null: none.
  Clock clock;                      ///< of what is done when it is reached.
};

Queue makeQueue(int device);
/// The queue of the legacy default stream, which streams that wait for it
/// share.
Queue legacyQueue(int device);

/// Does the work at once, puts it off or captures it.
CUresult submit(const Queue &queue, Work work);
/// Launches a graph. Its lanes keep the order that they were captured with.
CUresult submit(const Queue &queue, Graph &graph);
QueuePoint recordPoint(const Queue &queue);
/// Lets later work of a queue wait for a point, which may belong to another
/// device.
CUresult waitFor(const Queue &queue, const QueuePoint &point);

/// Drops a wait of one queue for another (nse_skip_stream_wait).
int64_t skipWait(int64_t number);

// Do the work that is put off; not allowed for captured queues and points.
CUresult finish(const Queue &queue);
CUresult finish(const QueuePoint &point);
CUresult finishDevice(int device);
/// CUDA_ERROR_NOT_READY if the point is not reached. Then one piece of work is
/// done, so that a caller who asks again and again comes to an end.
CUresult query(const QueuePoint &point);
void finishAll();

CUresult beginCapture(const Queue &queue);
/// Fails if other queues have work that the captured one does not wait for.
CUresult endCapture(const Queue &queue, Graph &graph);
bool isCaptured(const Queue &queue);
/// Success if the calling thread may do what a capture forbids: nothing is
/// captured, or its capture mode is relaxed.
CUresult checkUncaptured();
/// The capture mode of the calling thread (CUstreamCaptureMode).
int &captureMode();

/// How often the host has waited for work that was put off.
uint64_t countWaits();

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_DRIVER_STREAMQUEUES_H
