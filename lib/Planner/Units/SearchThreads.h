//===- SearchThreads.h - The threads of a search ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_SEARCHTHREADS_H
#define NEUROSHARD_LIB_PLANNER_UNITS_SEARCHTHREADS_H

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace neuroshard {

/// Runs work items on the calling thread and on threads of its own. Those start
/// with the first call that has more than one item; where the system refuses
/// threads, fewer share the work.
class SearchThreads {
public:
  /// The number of threads, the caller's included.
  explicit SearchThreads(int threads) : count(threads < 1 ? 1 : threads) {}
  ~SearchThreads();
  SearchThreads(const SearchThreads &) = delete;
  SearchThreads &operator=(const SearchThreads &) = delete;

  int threads() const { return count; }

  /// Calls work(0) ... work(items - 1), each once, in any order and on any
  /// thread; returns when all are done. Not to be called from inside work.
  void forEach(size_t items, const std::function<void(size_t)> &work);

private:
  void start();
  void serve();
  void takeItems(std::unique_lock<std::mutex> &lock);

  const int count;
  std::vector<std::thread> helpers;
  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(size_t)> *current = nullptr;
  size_t next = 0, end = 0, running = 0;
  bool started = false, stopping = false;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_SEARCHTHREADS_H
