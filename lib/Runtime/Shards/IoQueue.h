//===- IoQueue.h - Transfers of a device, one after the other ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_IOQUEUE_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_IOQUEUE_H

#include "RowIo.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace neuroshard::runtime {

/// Runs jobs on a thread of its own, in their order. After one has failed no
/// other runs: rows may be lost, so all waits from then on throw its error.
class IoQueue {
public:
  using Job = std::function<void(RowIo &)>;

  IoQueue();
  /// Runs what was submitted.
  ~IoQueue();

  /// Returns the job's number.
  int64_t submit(Job job);
  /// Waits for a job and all before it. Throws a RuntimeError if one failed.
  void wait(int64_t number);

private:
  void work();

  RowIo io;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;
  int64_t submitted = 0;
  int64_t done = 0;
  std::string error;
  bool stopping = false;
  std::thread worker; ///< last: it uses the others.
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_IOQUEUE_H
