//===- StreamQueues.cpp - Work of streams, done at once or late -----------===//
//
// One mutex guards all queues and is held while put-off work runs.
//
//===----------------------------------------------------------------------===//

#include "StreamQueues.h"
#include "Context.h"
#include "Launch.h"
#include "StreamRaces.h"

#include "neuroshard/Support/Random.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
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
    Work work;
    WorkOrder order;
    QueuePoint waitsFor;
  };

  WorkQueue(int device, std::string name)
      : device(device), name(std::move(name)) {}

  const int device;
  const std::string name;
  Lane lane;
  Clock clock; ///< of all that is given.
  std::deque<Item> items;
  uint64_t done = 0; ///< items that have left.
  std::shared_ptr<Capture> capture;
  uint64_t numCaptured = 0;
  Clock captureClock; ///< of all that is captured.

  uint64_t given() const { return done + items.size(); }
};

namespace {

std::mutex queuesMutex;
/// Waits of a queue for another that calls of device 0 have asked for, and
/// which of them is dropped.
int64_t ownWaits = 0, skippedWait = -1;
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

/// The device of the queue must be current.
CUresult run(const WorkQueue::Item &item) {
  if (!findsStreamRacesFromEnvironment())
    return item.work.run(nullptr);
  Accesses accesses;
  if (CUresult result = item.work.run(&accesses))
    return result;
  std::optional<std::string> race =
      streamRaces().record(item.work.name, item.order, accesses);
  return race ? loseContext(CUDA_ERROR_LAUNCH_FAILED, *race) : CUDA_SUCCESS;
}

/// Work of a device on which a kernel has failed is dropped.
void runFirst(WorkQueue &queue) {
  WorkQueue::Item item = std::move(queue.items.front());
  queue.items.pop_front();
  CurrentDevice device(queue.device);
  if (item.work.run && checkContext() == CUDA_SUCCESS)
    if (CUresult result = run(item))
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

/// The device of the calling thread's context; -1 if there is none.
int currentDevice() {
  int device = -1;
  checkContext(&device);
  return device;
}

/// The mutex must be held.
void finishLocked(const Queue &queue) {
  tellHost(queue->clock, currentDevice());
  QueuePoint end = {queue, queue->given(), nullptr, {}};
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

static Queue addQueue(int device, std::string stream) {
  stream.append(" of device ").append(std::to_string(device));
  auto queue = std::make_shared<WorkQueue>(device, std::move(stream));
  std::lock_guard lock(queuesMutex);
  std::erase_if(allQueues(), [](const auto &weak) { return weak.expired(); });
  allQueues().push_back(queue);
  return queue;
}

Queue makeQueue(int device) {
  static std::atomic<int> numMade{0};
  return addQueue(device, "stream " + std::to_string(++numMade));
}

Queue legacyQueue(int device) {
  static auto *queues = new std::map<int, Queue>();
  static std::mutex own;
  std::lock_guard lock(own);
  Queue &queue = (*queues)[device];
  if (!queue)
    queue = addQueue(device, "the default stream");
  return queue;
}

/// Adds work to the capture of a queue.
static void addCaptured(const Queue &queue, Work work) {
  Capture &capture = *queue->capture;
  queue->captureClock.raise(queue->lane.number, ++queue->numCaptured);
  capture.graph.work.push_back({std::move(work),
                                {queue->name + ", in a graph",
                                 queue->lane.number, queue->captureClock}});
  if (queue != capture.origin)
    capture.unjoined[queue] = queue->numCaptured;
}

/// The order of the next piece of work of a queue.
static WorkOrder nextOrder(WorkQueue &queue) {
  askHost(queue.clock, queue.device);
  queue.clock.raise(queue.lane.number, ++queue.lane.length);
  return {queue.name, queue.lane.number, queue.clock};
}

/// Does the work of an item at once, without the lock, or puts it off.
static CUresult give(std::unique_lock<std::mutex> &lock, const Queue &queue,
                     WorkQueue::Item item) {
  if (isLate() || !queue->items.empty()) {
    queue->items.push_back(std::move(item));
    return CUDA_SUCCESS;
  }
  lock.unlock();
  CurrentDevice device(queue->device);
  return run(item);
}

CUresult submit(const Queue &queue, Work work) {
  std::unique_lock lock(queuesMutex);
  if (!queue->capture)
    return give(lock, queue, {std::move(work), nextOrder(*queue), {}});
  addCaptured(queue, std::move(work));
  return CUDA_SUCCESS;
}

/// The graph's work, after what its queue has and the graph's launch before.
static std::vector<WorkQueue::Item> orderWork(WorkQueue &queue, Graph &graph) {
  Clock begin = nextOrder(queue).clock;
  for (const Graph::CapturedWork &captured : graph.work)
    graph.lanes.try_emplace(captured.order.lane);
  for (const auto &[number, lane] : graph.lanes)
    begin.raise(lane.number, lane.length);
  std::vector<WorkQueue::Item> items;
  for (const auto &[work, captured] : graph.work) {
    WorkOrder order = {captured.stream, graph.lanes[captured.lane].number,
                       begin};
    for (const auto &[number, lane] : graph.lanes)
      order.clock.raise(lane.number,
                        lane.length + captured.clock[number].known);
    queue.clock.join(order.clock);
    items.push_back({work, std::move(order), {}});
  }
  for (auto &[number, lane] : graph.lanes)
    lane.length = queue.clock[lane.number].known;
  return items;
}

CUresult submit(const Queue &queue, Graph &graph) {
  std::unique_lock lock(queuesMutex);
  if (queue->capture) {
    for (const Graph::CapturedWork &captured : graph.work)
      addCaptured(queue, captured.work);
    return CUDA_SUCCESS;
  }
  for (WorkQueue::Item &item : orderWork(*queue, graph)) {
    if (!lock.owns_lock())
      lock.lock();
    if (CUresult result = give(lock, queue, std::move(item)))
      return result;
  }
  return CUDA_SUCCESS;
}

QueuePoint recordPoint(const Queue &queue) {
  std::lock_guard lock(queuesMutex);
  if (queue->capture)
    return {queue, queue->numCaptured, queue->capture, queue->captureClock};
  askHost(queue->clock, queue->device);
  return {queue, queue->given(), nullptr, queue->clock};
}

/// A captured point lets the queue join the capture, or go on in it.
static CUresult waitCaptured(const Queue &queue, const QueuePoint &point) {
  if (!queue->capture) {
    if (!point.capture->origin)
      return fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                  "an event of a capture that has ended");
    queue->capture = point.capture;
    queue->numCaptured = 0;
    queue->captureClock = point.clock;
    if (queue != point.capture->origin)
      point.capture->unjoined.emplace(queue, 0);
    return CUDA_SUCCESS;
  }
  if (queue->capture != point.capture)
    return fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                "an event from outside of the capture");
  queue->captureClock.join(point.clock);
  Capture &capture = *queue->capture;
  auto open = capture.unjoined.find(point.queue);
  if (queue == capture.origin && open != capture.unjoined.end() &&
      open->second <= point.position)
    capture.unjoined.erase(open);
  return CUDA_SUCCESS;
}

/// Counts the wait, if device 0 asks for it.
static bool isSkipped(const WorkQueue &queue, const QueuePoint &point) {
  if (!point.queue || point.queue.get() == &queue)
    return false;
  return currentDevice() == 0 && ownWaits++ == skippedWait;
}

CUresult waitFor(const Queue &queue, const QueuePoint &point) {
  std::lock_guard lock(queuesMutex);
  if (queue->capture || point.capture)
    return point.capture ? waitCaptured(queue, point)
                         : fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                                "an event from outside of the capture");
  if (isSkipped(*queue, point))
    return CUDA_SUCCESS;
  if (currentDevice() != queue->device)
    queue->clock.joinUnsure(point.clock);
  else if (point.queue && point.queue->device != queue->device)
    queue->clock.joinSure(point.clock);
  else
    queue->clock.join(point.clock);
  if (!isDone(point))
    queue->items.push_back({{}, {}, point});
  return CUDA_SUCCESS;
}

int64_t skipWait(int64_t number) {
  std::lock_guard lock(queuesMutex);
  skippedWait = number;
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
  tellHost(point.clock, currentDevice());
  return checkContext();
}

CUresult query(const QueuePoint &point) {
  std::lock_guard lock(queuesMutex);
  if (point.capture)
    return refuseCaptured();
  if (!isDone(point))
    runFirst(*anyReady());
  if (!isDone(point))
    return CUDA_ERROR_NOT_READY;
  tellHost(point.clock, currentDevice());
  return checkContext();
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
  queue->captureClock = {};
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
