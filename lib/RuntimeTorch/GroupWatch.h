//===- GroupWatch.h - Heartbeats and failures of ranks ----------*- C++ -*-===//
//
// When a rank cannot go on, all ranks of its process group learn one cause. A
// rank that fails writes its cause into the group's store, where the first one
// stays. A thread of every rank polls the store, so that ranks that wait for
// others stop waiting. The threads also write heartbeats, which tell a process
// that has ended or is stopped from a slow one.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_GROUPWATCH_H
#define NEUROSHARD_LIB_RUNTIMETORCH_GROUPWATCH_H

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace neuroshard::runtime {

class GroupWatch : public std::enable_shared_from_this<GroupWatch> {
public:
  /// Keys in `store` begin with `prefix`, which no other watch has used. A
  /// process without a heartbeat for `silence` counts as gone. Must be made by
  /// make_shared.
  GroupWatch(const c10::intrusive_ptr<c10d::Store> &store, std::string prefix,
             int rank, int size, std::chrono::milliseconds silence);
  ~GroupWatch();
  /// Tells the other ranks that this one leaves in good order, and stops
  /// watching.
  void leave() noexcept;

  /// Returns when the collective has completed. Throws a CommunicatorError
  /// with the group's cause if it failed or the group has ended. `user` is the
  /// name of the process group that exchanges.
  void wait(c10d::Work &work, const std::string &user);

  /// Ends the group. The first cause that any rank gave stays.
  void end(const std::string &cause) noexcept;
  /// Ends the group after `error`. If a rank has gone, that is the cause and
  /// the error its consequence; else the error is the cause.
  void endAfter(const std::string &error) noexcept;

  /// The same after an exchange of this rank has failed with `error`. Takes its
  /// first line: messages of c10d may go on with addresses and a stack.
  void endAfterExchange(const std::string &error,
                        const std::string &user) noexcept;
  /// Notes that this rank has closed the process group `user`, so that others
  /// can say why exchanges with it fail.
  void markClosed(const std::string &user) noexcept;

  bool hasEnded();
  /// "" while the group goes on.
  std::string causeOfEnd();
  /// Throws a CommunicatorError if the group has ended.
  void throwIfEnded();

private:
  using Clock = std::chrono::steady_clock;

  std::string key(const char *name) const;
  std::string key(const char *name, int peer) const;
  std::string readKey(const std::string &name);

  void watch();
  void waitForOthers();
  bool sleepUntilNextLook();
  void look();
  void beat();
  bool isNextSilent();
  void adopt(const std::string &text);

  std::string findMissingRanks();
  bool hasAnswered(int peer, int64_t call);
  bool hasLeft(int peer);
  std::string closedKey(const std::string &user, int peer) const;
  std::string describeMissing(const std::vector<int> &missing);
  bool isFirstCaller();
  bool waitForCause(Clock::duration limit);

  const std::string prefix;
  const int rank;
  const int size;
  const Clock::duration lookEvery;
  const Clock::duration rollCallTakes;
  const Clock::duration silence;
  c10::intrusive_ptr<c10d::Store> store;
  /// Set after the first failed request: torch prints a warning for each.
  std::atomic<bool> storeIsLost{false};

  // Used by the watcher thread only.
  int64_t answeredCall = 0;
  int64_t beats = 0;
  Clock::time_point lastBeat;
  int next;             ///< the rank whose heartbeat this rank watches.
  std::string nextBeat; ///< its last heartbeat; "" before the first.
  Clock::duration nextSilentFor{};

  std::mutex mutex; ///< guards what follows.
  std::condition_variable changed;
  bool ended = false;
  bool stopping = false;
  std::string cause;
  std::thread watcher;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_GROUPWATCH_H
