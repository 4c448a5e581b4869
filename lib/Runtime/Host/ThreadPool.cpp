//===- ThreadPool.cpp - The threads of one device -------------------------===//
//
// Runs one job at a time. Workers sleep between jobs: the devices of a process
// share the cores, and a worker that spins takes one from another device.
// Before a thread sleeps it polls for as long as it has worked, and at least
// for about as long as waking a thread takes. It yields its core meanwhile. So
// polling costs no more than the work, and the jobs of a step, with the serial
// work between them, find their workers awake.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Runtime/ThreadPool.h"

#include <algorithm>

namespace neuroshard::runtime {

namespace {
thread_local bool insideParallelFor = false;

/// Marks the thread as working on a job while in scope.
class InsideScope {
public:
  InsideScope() { insideParallelFor = true; }
  ~InsideScope() { insideParallelFor = false; }
};

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kLeastPatience(100), kMostPatience(1000);

/// Polls `done` for about as long as the thread has worked last.
template <typename Done>
void waitBriefly(Clock::duration worked, const Done &done) {
  auto end = Clock::now() +
             std::clamp<Clock::duration>(worked, kLeastPatience, kMostPatience);
  while (!done() && Clock::now() < end)
    std::this_thread::yield();
}
} // namespace

ThreadPool::ThreadPool(int threads) {
  try {
    for (int i = 1; i < threads; ++i)
      workers.emplace_back([this] { work(); });
  } catch (...) { // no more threads available: end those that run
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  started.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::run(int64_t jobCount, const void *jobContext, Call jobCall) {
  if (insideParallelFor || workers.empty() || jobCount <= 1) {
    for (int64_t i = 0; i < jobCount; ++i)
      jobCall(jobContext, i);
    return;
  }
  {
    std::lock_guard lock(mutex);
    context = jobContext;
    call = jobCall;
    count = jobCount;
    next.store(0, std::memory_order_relaxed);
    error = nullptr;
    busyWorkers = static_cast<int>(workers.size());
    ++generation;
  }
  started.notify_all();
  waitBriefly(takeIndices(), [&] { return busyWorkers == 0; });
  std::unique_lock lock(mutex);
  finished.wait(lock, [&] { return busyWorkers == 0; });
  if (error)
    std::rethrow_exception(error);
}

void ThreadPool::work() {
  uint64_t seen = 0;
  Clock::duration worked(0);
  for (;;) {
    waitBriefly(worked, [&] { return generation != seen; });
    {
      std::unique_lock lock(mutex);
      started.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping)
        return;
      seen = generation;
    }
    worked = takeIndices();
    std::lock_guard lock(mutex);
    if (--busyWorkers == 0)
      finished.notify_one();
  }
}

std::chrono::steady_clock::duration ThreadPool::takeIndices() {
  InsideScope inside;
  auto begin = Clock::now();
  try {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
      call(context, i);
  } catch (...) {
    next.store(count, std::memory_order_relaxed);
    std::lock_guard lock(mutex);
    if (!error)
      error = std::current_exception();
  }
  return Clock::now() - begin;
}

} // namespace neuroshard::runtime
