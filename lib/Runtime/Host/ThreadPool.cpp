//===- ThreadPool.cpp - The threads of one device -------------------------===//
//
// Runs one job at a time. Workers sleep between jobs: the devices of a process
// share the cores, and a worker that spins takes one from another device.
// Before a thread sleeps it polls for as long as the last job took its caller,
// and at least for about as long as waking a thread takes. It yields its core
// meanwhile. So polling costs no more than the work, and the jobs of a step,
// with the serial work between them, find their workers awake. Where a step
// returns to work of its caller it lets them rest.
//
// A scheduler may let a worker wait for the core of the caller, which keeps it
// for the whole job, while another core idles. So workers keep off it.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Runtime/ThreadPool.h"

#include <algorithm>

#ifdef __linux__
#include <pthread.h>
#endif

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

/// Polls `done` for about as long as a job took.
template <typename Done>
void waitBriefly(Clock::duration job, const Done &done) {
  auto end = Clock::now() +
             std::clamp<Clock::duration>(job, kLeastPatience, kMostPatience);
  while (!done() && Clock::now() < end)
    std::this_thread::yield();
}
} // namespace

CoreKeeper::CoreKeeper() {
#ifdef __linux__
  cpu_set_t own;
  if (pthread_getaffinity_np(pthread_self(), sizeof(own), &own) == 0 &&
      CPU_COUNT(&own) > 1)
    allowed = own;
#endif
}

void CoreKeeper::keepOffCaller(std::vector<std::thread> &workers) {
#ifdef __linux__
  int core = sched_getcpu();
  if (!allowed || core < 0 || core == kept)
    return;
  cpu_set_t others = *allowed;
  CPU_CLR(core, &others);
  for (std::thread &worker : workers) // an error leaves it where it may run
    pthread_setaffinity_np(worker.native_handle(), sizeof(others), &others);
  kept = core;
#else
  (void)workers;
#endif
}

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
  resting = false;
  cores.keepOffCaller(workers);
  started.notify_all();
  auto begin = Clock::now();
  takeIndices();
  lastJob = Clock::now() - begin;
  waitBriefly(lastJob, [&] { return busyWorkers == 0; });
  std::unique_lock lock(mutex);
  finished.wait(lock, [&] { return busyWorkers == 0; });
  if (error)
    std::rethrow_exception(error);
}

void ThreadPool::work() {
  uint64_t seen = 0;
  for (;;) {
    waitBriefly(lastJob, [&] { return generation != seen || resting; });
    {
      std::unique_lock lock(mutex);
      started.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping)
        return;
      seen = generation;
    }
    takeIndices();
    std::lock_guard lock(mutex);
    if (--busyWorkers == 0)
      finished.notify_one();
  }
}

void ThreadPool::takeIndices() {
  InsideScope inside;
  try {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
      call(context, i);
  } catch (...) {
    next.store(count, std::memory_order_relaxed);
    std::lock_guard lock(mutex);
    if (!error)
      error = std::current_exception();
  }
}

} // namespace neuroshard::runtime
