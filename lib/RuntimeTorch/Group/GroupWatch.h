//===- GroupWatch.h - Heartbeats and failures of ranks ----------*- C++ -*-===//
//
// When a rank cannot go on, all ranks of its process group learn one cause. A
// rank that fails writes its cause into the group's store, where the first one
// stays. A thread of every rank polls the store, so that ranks that wait for
// others stop waiting. The threads also write heartbeats, which tell a process
// that has ended or is stopped from a slow one. A process that does not notice
// the end of its group, because it hangs elsewhere, is told of and then ended.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_GROUP_GROUPWATCH_H
#define NEUROSHARD_LIB_RUNTIMETORCH_GROUP_GROUPWATCH_H

#include "StoreClient.h"

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace neuroshard::runtime {

/// Messages of a rank to others, or from them.
using Messages = std::vector<c10::intrusive_ptr<c10d::Work>>;

/// The limits of a watch.
struct WatchLimits {
  /// A process without a heartbeat, and a store without an answer, for this
  /// long count as gone.
  std::chrono::milliseconds silence;
  /// A process that does not notice for this long that its group has ended is
  /// ended.
  std::chrono::milliseconds patience;
};

class GroupWatch : public std::enable_shared_from_this<GroupWatch> {
public:
  /// Keys in `store` begin with `prefix`, which no other watch has used.
  /// `keepsStore`: this process has the store, which ends with it. Must be made
  /// by make_shared.
  GroupWatch(const c10::intrusive_ptr<c10d::Store> &store, std::string prefix,
             int rank, int size, bool keepsStore, WatchLimits limits);
  ~GroupWatch();
  /// Tells the other ranks that this one leaves in good order, and stops
  /// watching.
  void leave() noexcept;

  /// To be called at the start of each exchange. By their number, the ranks
  /// that hang are told from those that wait for them.
  void countExchange() { ++exchanges; }
  /// Returns when the collective has completed. Throws a CommunicatorError
  /// with the group's cause if it failed or the group has ended. `user` is the
  /// name of the process group that exchanges.
  void wait(c10d::Work &work, const std::string &user);
  /// The same for messages, each of which may take `timeout`. They are aborted
  /// when the group ends.
  void wait(const Messages &messages, std::chrono::milliseconds timeout,
            const std::string &user);

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

  /// Says why a notice that some rank gave ends the group; "" if it does not,
  /// or not yet.
  using Judge = std::function<std::string(const std::string &notice)>;
  /// Asks `judge`, as long as it lives, about the last notice of the topic, at
  /// each look and in the watcher's thread.
  void listen(const std::string &topic, const std::shared_ptr<Judge> &judge);
  /// Gives all ranks that listen a notice.
  void tell(const std::string &topic, const std::string &notice) noexcept;

  /// The caller must go on as hasEnded, causeOfEnd and throwIfEnded say: the
  /// process has then noticed the end.
  bool hasEnded();
  /// "" while the group goes on.
  std::string causeOfEnd();
  /// Throws a CommunicatorError if the group has ended.
  void throwIfEnded();

private:
  using Clock = std::chrono::steady_clock;

  std::string key(const char *name) const;
  std::string key(const char *name, int peer) const;

  void watch();
  void sayGoodbye();
  void waitForOthers();
  bool sleepUntilNextLook();
  void look();
  void readNotices();
  void judgeNotices();
  void answerCall(int64_t call);
  void beat();
  bool isNextSilent();
  void adopt(const std::string &text);
  bool isOver();
  bool isUnnoticed();
  void endUnawareProcess();
  std::string describeLostStore() const;

  /// The same; `findCulprit` names who is to blame if no rank has gone.
  void endAfter(const std::string &error,
                const std::function<std::string()> &findCulprit) noexcept;
  std::string findMissingRanks();
  std::string findHangingRanks();
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
  const bool keepsStore;
  const WatchLimits limits;
  StoreClient store;
  std::atomic<int64_t> exchanges{0};
  /// Set when the rank with the store has left in good order.
  std::atomic<bool> storeHasLeft{false};

  // Used by the watcher thread only.
  int64_t answeredCall = 0;
  int64_t beats = 0;
  Clock::time_point lastBeat;
  int next;             ///< the rank whose heartbeat this rank watches.
  std::string nextBeat; ///< its last heartbeat; "" before the first.
  Clock::duration nextSilentFor{};
  Clock::duration unnoticedFor{}; ///< since the group has ended.

  std::mutex mutex; ///< guards what follows.
  std::condition_variable changed;
  bool ended = false;
  bool noticed = false; ///< the program has been told of the end.
  bool stopping = false;
  std::string cause;
  std::vector<const Messages *> awaited; ///< of each thread that waits.
  struct Topic {
    std::string name;
    std::weak_ptr<Judge> judge;
    std::string notice; ///< the last; "": none.
  };
  std::vector<Topic> topics;
  std::thread watcher;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_GROUP_GROUPWATCH_H
