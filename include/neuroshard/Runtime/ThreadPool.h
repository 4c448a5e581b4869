//===- ThreadPool.h - The threads of one device ----------------*- C++ -*-===//
//
// parallelFor hands out indices one by one to the workers and the caller. Each
// index writes its own part of the output, so that results do not depend on
// which thread runs it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_THREADPOOL_H
#define NEUROSHARD_RUNTIME_THREADPOOL_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

namespace neuroshard::runtime {

/// Keeps workers off the core that their caller runs on. Does nothing where
/// there is one core, or no Linux.
class CoreKeeper {
public:
  /// Workers may run where the calling thread may.
  CoreKeeper();
  void keepOffCaller(std::vector<std::thread> &workers);

private:
#ifdef __linux__
  std::optional<cpu_set_t> allowed; ///< nothing: one core.
  int kept = -1;
#endif
};

class ThreadPool {
public:
  /// `threads` counts the caller of parallelFor; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int numThreads() const { return static_cast<int>(workers.size()) + 1; }

  /// Calls function(i) for all i in [0, count) and returns when all are done.
  /// Rethrows the first exception. A call from inside a parallelFor runs in
  /// the calling thread. One thread may call this at a time.
  template <typename Function>
  void parallelFor(int64_t count, const Function &function) {
    run(count, &function, [](const void *context, int64_t index) {
      (*static_cast<const Function *>(context))(index);
    });
  }

  /// Says that no job follows soon: workers need not poll for one.
  void rest() { resting = true; }

private:
  using Call = void (*)(const void *context, int64_t index);

  void run(int64_t count, const void *context, Call call);
  void work();
  void stop();
  void takeIndices();

  std::vector<std::thread> workers;
  CoreKeeper cores;
  std::mutex mutex;
  std::condition_variable started;
  std::condition_variable finished;
  std::atomic<uint64_t> generation{0};
  std::atomic<int> busyWorkers{0};
  std::atomic<bool> resting{false};
  bool stopping = false;
  /// How long the caller has worked on the last job.
  std::atomic<std::chrono::steady_clock::duration> lastJob{};

  // The current job; written only while no worker is busy.
  const void *context = nullptr;
  Call call = nullptr;
  int64_t count = 0;
  std::atomic<int64_t> next{0};
  std::exception_ptr error;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_THREADPOOL_H
