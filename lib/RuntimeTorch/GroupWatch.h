//===- GroupWatch.h - Why a group of processes has ended -------*- C++ -*-===//
//
// The ranks of a process group agree on one cause when one of them cannot go
// on. A rank that fails writes its cause into the group's store, where the
// first one stays; a thread of every rank looks there, so that a rank that
// waits for others stops waiting.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_GROUPWATCH_H
#define NEUROSHARD_LIB_RUNTIMETORCH_GROUPWATCH_H

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace neuroshard::runtime {

class GroupWatch : public std::enable_shared_from_this<GroupWatch> {
public:
  /// `store` is the group's own: keys of other groups do not meet ours. Made
  /// by make_shared.
  GroupWatch(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size);
  ~GroupWatch();

  /// Returns when the collective has completed. Throws a CommunicatorError
  /// with the group's cause if it failed or the group has ended.
  void wait(c10d::Work &work);

  /// Ends the group. The first cause of all ranks stays.
  void end(const std::string &cause) noexcept;

  bool hasEnded();
  /// Throws a CommunicatorError if the group has ended.
  void throwIfEnded();

private:
  void watch();
  void adopt(const std::string &text);
  std::string findMissingRanks();
  void endBecause(const std::string &error);

  const int rank;
  const int size;
  c10::intrusive_ptr<c10d::Store> store;
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  bool stopping = false;
  std::string cause;
  std::thread watcher;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_GROUPWATCH_H
