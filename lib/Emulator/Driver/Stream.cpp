//===- Stream.cpp - Streams and events of the driver ----------------------===//
//
// Streams and events belong to the device whose context was current when they
// were made.
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "StreamRaces.h"

#include <chrono>
#include <utility>

using namespace neuroshard::emulator;

using SteadyClock = std::chrono::steady_clock;

namespace neuroshard::cuda {
struct CUstream_st {
  int device;
  Queue queue;
};
struct CUevent_st {
  unsigned flags;
  int device;
  bool isRecorded;
  QueuePoint point;
  /// When the point was reached; shared with the work that writes it.
  std::shared_ptr<SteadyClock::time_point> time;
};
} // namespace neuroshard::cuda

namespace {
HandleSet<CUstream_st> streams;
HandleSet<CUevent_st> events;

/// CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING and CU_EVENT_INTERPROCESS;
/// CU_EVENT_WAIT_EXTERNAL.
constexpr unsigned kEventFlags = 7, kWaitFlags = 1;

/// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are 1 and 2; the emulator makes no
/// difference.
bool isDefaultStream(CUstream stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2;
}

/// Success if a stream, which checkStream has accepted, is one of `device`.
CUresult checkDeviceOf(CUstream stream, int device) {
  if (isDefaultStream(stream) || stream->device == device)
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_HANDLE,
              "a stream of device " + std::to_string(stream->device) +
                  " where one of device " + std::to_string(device) +
                  " is expected");
}

CUresult checkEvent(CUevent event) {
  if (CUresult result = checkContext())
    return result;
  if (events.contains(event))
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_HANDLE, "not an event");
}
} // namespace

CUresult neuroshard::emulator::checkStream(CUstream stream) {
  if (isDefaultStream(stream) || streams.contains(stream))
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_HANDLE, "not a stream");
}

static Queue queueOf(CUstream stream, int device) {
  return isDefaultStream(stream) ? legacyQueue(device) : stream->queue;
}

CUresult neuroshard::emulator::checkCall(CUstream stream, Queue *queue) {
  int device = 0;
  if (CUresult result = checkContext(&device))
    return result;
  if (CUresult result = checkStream(stream))
    return result;
  if (CUresult result = checkDeviceOf(stream, device))
    return result;
  if (queue)
    *queue = queueOf(stream, device);
  return CUDA_SUCCESS;
}

CUresult neuroshard::emulator::checkSynchronous(Queue *queue) {
  if (CUresult result = checkCall(nullptr, queue))
    return result;
  return checkUncaptured();
}

EMULATOR_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  int device = 0;
  if (CUresult result = checkContext(&device))
    return result;
  if (flags > CU_STREAM_NON_BLOCKING)
    return fail(CUDA_ERROR_INVALID_VALUE, "unknown flags of a stream");
  *stream = new CUstream_st{device, flags & CU_STREAM_NON_BLOCKING
                                        ? makeQueue(device)
                                        : legacyQueue(device)};
  streams.add(*stream);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  if (!streams.remove(stream))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not a stream");
  {
    CurrentDevice device(stream->device);
    finish(stream->queue); // an error comes up at the next call
  }
  delete stream;
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  Queue queue;
  CUresult result = checkCall(stream, &queue);
  return result ? result : finish(queue);
}

EMULATOR_EXPORT CUresult cuStreamQuery(CUstream stream) {
  Queue queue;
  CUresult result = checkCall(stream, &queue);
  return result ? result : query(recordPoint(queue));
}

EMULATOR_EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  Queue queue;
  if (CUresult result = checkCall(stream, &queue))
    return result;
  *status = isCaptured(queue) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                              : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  if (*mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return fail(CUDA_ERROR_INVALID_VALUE, "unknown mode of capturing");
  std::swap(*mode, captureMode());
  return checkInitialized();
}

/// The event may belong to another device.
EMULATOR_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event,
                                           unsigned flags) {
  if (flags > kWaitFlags)
    return fail(CUDA_ERROR_INVALID_VALUE, "unknown flags of a wait");
  if (CUresult result = checkEvent(event))
    return result;
  if (CUresult result = checkStream(stream))
    return result;
  int device = 0;
  checkContext(&device);
  return waitFor(queueOf(stream, device), event->point);
}

EMULATOR_EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags) {
  int device = 0;
  if (CUresult result = checkContext(&device))
    return result;
  if (flags > kEventFlags)
    return fail(CUDA_ERROR_INVALID_VALUE, "unknown flags of an event");
  *event = new CUevent_st{flags, device, false, {}, nullptr};
  events.add(*event);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  if (!events.remove(event))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not an event");
  delete event;
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  if (CUresult result = checkEvent(event))
    return result;
  if (CUresult result = checkStream(stream))
    return result;
  int device = event->device;
  if (isDefaultStream(stream))
    checkContext(&device);
  if (device != event->device)
    return fail(CUDA_ERROR_INVALID_HANDLE,
                "an event of another device than the default stream's");
  if (CUresult result = checkDeviceOf(stream, event->device))
    return result;
  Queue queue = queueOf(stream, device);
  event->isRecorded = true;
  if (!(event->flags & CU_EVENT_DISABLE_TIMING)) {
    event->time = std::make_shared<SteadyClock::time_point>();
    submit(queue, {"time of an event", [time = event->time](Accesses *) {
                     *time = SteadyClock::now();
                     return CUDA_SUCCESS;
                   }});
  }
  event->point = recordPoint(queue);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuEventSynchronize(CUevent event) {
  CUresult result = checkEvent(event);
  return result ? result : finish(event->point);
}

EMULATOR_EXPORT CUresult cuEventQuery(CUevent event) {
  CUresult result = checkEvent(event);
  return result ? result : query(event->point);
}

/// By this machine's clock: tells nothing about the speed of a GPU.
EMULATOR_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds,
                                               CUevent start, CUevent end) {
  if (CUresult result = checkEvent(start))
    return result;
  if (CUresult result = checkEvent(end))
    return result;
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING ||
      !start->isRecorded || !end->isRecorded)
    return fail(CUDA_ERROR_INVALID_HANDLE, "an event that has no time");
  for (CUevent event : {start, end})
    if (CUresult result = finish(event->point))
      return result;
  *milliseconds =
      std::chrono::duration<float, std::milli>(*end->time - *start->time)
          .count();
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start,
                                            CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

EMULATOR_EXPORT CUresult cuCtxSynchronize(void) {
  int device = 0;
  if (CUresult result = checkContext(&device))
    return result;
  if (CUresult result = checkUncaptured())
    return result;
  return finishDevice(device);
}

EMULATOR_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  if (CUresult result = checkDevice(device))
    return result;
  if (hasOneUser(device)) {
    CurrentDevice current(device);
    finishDevice(device); // an error ends with the context
  }
  CUresult result = releaseContext(device);
  streamRaces().forgetFreed();
  return result;
}
