//===- StreamQueues.cpp - Work of streams, done at once or late -----------===//
//
// One mutex guards all queues and is held while put-off work runs.
//
//===----------------------------------------------------------------------===//

#include "StreamQueues.h"
#include "Context.h"
#include "Launch.h"

#include "neuroshard/Support/Random.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>

namespace neuroshard::emulator {

struct Capture {
  Queue origin;
  Graph graph;
  /// Work of other queues that the origin does not wait for yet.
  std::map<Queue, uint64_t> unjoined;
};

struct WorkQueue {
  struct Item {
    Work run;
    QueuePoint waitsFor;
  };

  explicit WorkQueue(int device) : device(device) {}

  const int device;
  std::deque<Item> items;
  uint64_t done = 0; ///< items that have left.
  std::shared_ptr<Capture> capture;
  uint64_t numCaptured = 0;

  uint64_t given() const { return done + items.size(); }
};

namespace {

std::mutex queuesMutex;
/// Waits for other queues that the queues of device 0 had by its own calls, and
/// which of them is dropped.
int64_t ownWaits = 0, skippedWait = -1;
/// The queue with the dropped wait, and what it should have waited for.
Queue hurried;
QueuePoint missed;
std::atomic<uint64_t> waits{0};
std::atomic<int> numCaptures{0};

bool isLate() {
  const char *text = std::getenv("NEUROSHARD_EMULATOR_STREAMS");
  return text && std::string_view(text) == "late";
}

/// All queues that live. Never destroyed: streams may be used at exit.
std::vector<std::weak_ptr<WorkQueue>> &allQueues() {
  static auto *queues = new std::vector<std::weak_ptr<WorkQueue>>();
  return *queues;
}

SplitMix64 &random() {
  static auto generator = SplitMix64(getSeedFromEnvironment());
  return generator;
}

bool isDone(const QueuePoint &point) {
  return !point.queue || point.queue->done >= point.position;
}

bool isReady(const WorkQueue &queue) {
  return !queue.items.empty() && isDone(queue.items.front().waitsFor);
}

/// The queue that has to go on before `queue` can.
Queue firstNeeded(Queue queue) {
  while (!queue->items.empty() && !isDone(queue->items.front().waitsFor))
    queue = queue->items.front().waitsFor.queue;
  return queue;
}

Queue anyReady() {
  std::vector<Queue> ready;
  for (const auto &weak : allQueues())
    if (Queue queue = weak.lock(); queue && isReady(*queue))
      ready.push_back(queue);
  return ready[random().below(ready.size())];
}

/// Work of a device on which a kernel has failed is dropped.
void runFirst(WorkQueue &queue) {
  WorkQueue::Item item = std::move(queue.items.front());
  queue.items.pop_front();
  CurrentDevice device(queue.device);
  if (item.run && checkContext() == CUDA_SUCCESS)
    if (CUresult result = item.run())
      loseContext(result, "work of a stream has failed");
  ++queue.done; // last: others wait for what the item did
}

/// Half of the time as late as possible, else in a random order.
void runUntil(const QueuePoint &point) {
  while (!isDone(point)) {
    Queue next = random().below(2) ? firstNeeded(point.queue) : anyReady();
    runFirst(*next);
  }
}

/// Runs the work of the queue with the dropped wait as early as the others let
/// it, as long as it is before what it should have waited for. The mutex must
/// be held.
void hurry(const Queue &queue) {
  while (queue == hurried && !isDone(missed) && !queue->items.empty())
    runFirst(*firstNeeded(queue));
}

/// The mutex must be held.
void finishLocked(const Queue &queue) {
  QueuePoint end = {queue, queue->given(), nullptr};
  if (isDone(end))
    return;
  ++waits;
  runUntil(end);
}

CUresult refuseCaptured() {
  return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              "not allowed while a stream is captured");
}

} // namespace

Queue makeQueue(int device) {
  auto queue = std::make_shared<WorkQueue>(device);
  std::lock_guard lock(queuesMutex);
  std::erase_if(allQueues(), [](const auto &weak) { return weak.expired(); });
  allQueues().push_back(queue);
  return queue;
}

Queue legacyQueue(int device) {
  static auto *queues = new std::map<int, Queue>();
  static std::mutex own;
  std::lock_guard lock(own);
  Queue &queue = (*queues)[device];
  if (!queue)
    queue = makeQueue(device);
  return queue;
}

CUresult submit(const Queue &queue, Work work) {
  {
    std::lock_guard lock(queuesMutex);
    if (queue->capture) {
      Capture &capture = *queue->capture;
      capture.graph.work.push_back(std::move(work));
      ++queue->numCaptured;
      if (queue != capture.origin)
        capture.unjoined[queue] = queue->numCaptured;
      return CUDA_SUCCESS;
    }
    if (isLate() || !queue->items.empty()) {
      queue->items.push_back({std::move(work), {}});
      hurry(queue);
      return CUDA_SUCCESS;
    }
  }
  CurrentDevice device(queue->device);
  return work();
}

QueuePoint recordPoint(const Queue &queue) {
  std::lock_guard lock(queuesMutex);
  if (queue->capture)
    return {queue, queue->numCaptured, queue->capture};
  return {queue, queue->given(), nullptr};
}

/// A captured point lets the queue join the capture, or go on in it.
static CUresult waitCaptured(const Queue &queue, const QueuePoint &point) {
  if (!queue->capture) {
    if (!point.capture->origin)
      return fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                  "an event of a capture that has ended");
    queue->capture = point.capture;
    queue->numCaptured = 0;
    if (queue != point.capture->origin)
      point.capture->unjoined.emplace(queue, 0);
    return CUDA_SUCCESS;
  }
  if (queue->capture != point.capture)
    return fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                "an event from outside of the capture");
  Capture &capture = *queue->capture;
  auto open = capture.unjoined.find(point.queue);
  if (queue == capture.origin && open != capture.unjoined.end() &&
      open->second <= point.position)
    capture.unjoined.erase(open);
  return CUDA_SUCCESS;
}

/// Counts the wait, if it is one of device 0's own.
static bool isSkipped(const WorkQueue &queue, const QueuePoint &point) {
  if (!point.queue || point.queue.get() == &queue)
    return false;
  int device = 0;
  checkContext(&device);
  return device == 0 && queue.device == 0 && ownWaits++ == skippedWait;
}

CUresult waitFor(const Queue &queue, const QueuePoint &point) {
  std::lock_guard lock(queuesMutex);
  if (queue->capture || point.capture)
    return point.capture ? waitCaptured(queue, point)
                         : fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                                "an event from outside of the capture");
  if (isSkipped(*queue, point)) {
    hurried = queue;
    missed = point;
  } else if (!isDone(point)) {
    queue->items.push_back({nullptr, point});
  }
  return CUDA_SUCCESS;
}

int64_t skipWait(int64_t number) {
  std::lock_guard lock(queuesMutex);
  skippedWait = number;
  hurried = nullptr;
  missed = {};
  return std::exchange(ownWaits, 0);
}

CUresult finish(const Queue &queue) {
  std::lock_guard lock(queuesMutex);
  if (queue->capture)
    return refuseCaptured();
  finishLocked(queue);
  return checkContext();
}

CUresult finish(const QueuePoint &point) {
  std::lock_guard lock(queuesMutex);
  if (point.capture)
    return refuseCaptured();
  if (!isDone(point)) {
    ++waits;
    runUntil(point);
  }
  return checkContext();
}

CUresult query(const QueuePoint &point) {
  std::lock_guard lock(queuesMutex);
  if (point.capture)
    return refuseCaptured();
  if (!isDone(point))
    runFirst(*anyReady());
  return isDone(point) ? checkContext() : CUDA_ERROR_NOT_READY;
}

CUresult finishDevice(int device) {
  std::lock_guard lock(queuesMutex);
  for (const auto &weak : std::vector(allQueues()))
    if (Queue queue = weak.lock(); queue && queue->device == device)
      finishLocked(queue);
  return checkContext();
}

void finishAll() {
  std::lock_guard lock(queuesMutex);
  for (const auto &weak : std::vector(allQueues()))
    if (Queue queue = weak.lock())
      finishLocked(queue);
}

CUresult beginCapture(const Queue &queue) {
  std::lock_guard lock(queuesMutex);
  if (queue->capture)
    return refuseCaptured();
  queue->capture = std::make_shared<Capture>();
  queue->capture->origin = queue;
  queue->numCaptured = 0;
  ++numCaptures;
  return CUDA_SUCCESS;
}

CUresult endCapture(const Queue &queue, Graph &graph) {
  std::lock_guard lock(queuesMutex);
  std::shared_ptr<Capture> capture = queue->capture;
  if (!capture || capture->origin != queue)
    return fail(CUDA_ERROR_INVALID_VALUE, "no capture began on this stream");
  for (const auto &weak : allQueues())
    if (Queue other = weak.lock(); other && other->capture == capture)
      other->capture = nullptr;
  capture->origin = nullptr;
  --numCaptures;
  if (!capture->unjoined.empty())
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                "the capture has work of other streams that the captured one "
                "does not wait for");
  graph = std::move(capture->graph);
  return CUDA_SUCCESS;
}

bool isCaptured(const Queue &queue) {
  std::lock_guard lock(queuesMutex);
  return queue->capture != nullptr;
}

int &captureMode() {
  static thread_local int mode = 0;
  return mode;
}

CUresult checkUncaptured() {
  if (numCaptures > 0 && captureMode() != CU_STREAM_CAPTURE_MODE_RELAXED)
    return refuseCaptured();
  return CUDA_SUCCESS;
}

uint64_t countWaits() { return waits; }

} // namespace neuroshard::emulator
