//===- GroupWatch.cpp - Heartbeats and failures of ranks ------------------===//
//
// Keys in the store: `cause`, the text; `news`, a number that grows with every
// roll call and cause, so that a poll is one request; `here/R`, the last roll
// call that rank R's thread has answered, and its number of exchanges so far;
// `beat/R`, its heartbeat; `left/R`, set when it has left in good order, and
// `store-left`, when that was the rank with the store. Each rank watches the
// heartbeat of the next one, so that requests grow with the ranks and not with
// their square.
//
//===----------------------------------------------------------------------===//

#include "GroupWatch.h"
#include "neuroshard/Runtime/Communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace neuroshard::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto kBeatEvery = 2s;
/// Of ranks that end in good order, the one with the store may be first.
constexpr auto kStoreGrace = 3s;
/// How long the store is kept for ranks that may have gone as well.
constexpr auto kStoreKept = 5s;
/// How long a program may take to notice the end before it is told on stderr.
constexpr auto kToldAfter = 5s;

/// Keeps the load of the store at about 500 polls per second for any number of
/// ranks.
std::chrono::milliseconds lookInterval(int size) {
  return std::max(200ms, size * 2ms);
}

/// Whether torchrun's agent has the store; else rank 0 has it.
bool agentHasStore() {
  const char *says = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  return says && std::string(says) == "True";
}

/// "rank 1", "ranks 1 and 2", "ranks 0, 1 and 2".
std::string nameRanks(const std::vector<int> &ranks) {
  std::string names = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    names.append(i == 0                  ? ""
                 : i + 1 == ranks.size() ? " and "
                                         : ", ")
        .append(std::to_string(ranks[i]));
  return names;
}

/// The names of the ranks and what is said of one, or of several.
std::string sayOf(const std::vector<int> &ranks, const char *one,
                  const char *several) {
  return nameRanks(ranks).append(ranks.size() == 1 ? one : several);
}

/// A number of exchanges from the answer to a roll call; -1 for none.
int64_t exchangesIn(const std::string &answer) {
  std::istringstream text(answer);
  int64_t call = 0, count = -1;
  text >> call >> count;
  return text ? count : -1;
}

} // namespace

GroupWatch::GroupWatch(const c10::intrusive_ptr<c10d::Store> &groupStore,
                       std::string keyPrefix, int rank, int size,
                       bool keepsStore, WatchLimits limits)
    : prefix(std::move(keyPrefix)), rank(rank), size(size),
      lookEvery(lookInterval(size)), rollCallTakes(3s + 10 * lookEvery),
      keepsStore(keepsStore && !agentHasStore()), limits(limits),
      store(groupStore, limits.silence), next((rank + 1) % size) {
  try {
    answerCall(0);
    beat();
  } catch (const std::exception &) {
    throw CommunicatorError(describeLostStore());
  }
  watcher = std::thread([this] { watch(); });
}

GroupWatch::~GroupWatch() { leave(); }

void GroupWatch::leave() noexcept {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  if (!watcher.joinable())
    return;
  watcher.join();
  try {
    sayGoodbye();
  } catch (const std::exception &) {
    // Nobody is left to hear it.
  }
  store.close();
}

void GroupWatch::sayGoodbye() {
  store.set(key("left", rank), "1");
  if (!keepsStore)
    return;
  store.set(key("store-left"), "1");
  waitForOthers();
}

/// The process with the store leaves last if the others are about to leave,
/// too: they read the cause there, and torch warns of stores that vanish.
void GroupWatch::waitForOthers() {
  int64_t news = store.add(key("news"), 1);
  bool over = isOver();
  auto deadline = Clock::now() + kStoreKept;
  for (int peer = 0; peer < size; ++peer)
    while (peer != rank && !hasLeft(peer) &&
           !(over && hasAnswered(peer, news))) {
      if (Clock::now() > deadline)
        return;
      std::this_thread::sleep_for(20ms);
    }
}

std::string GroupWatch::key(const char *name) const {
  return std::string(prefix).append("/").append(name);
}

std::string GroupWatch::key(const char *name, int peer) const {
  return key(name).append("/").append(std::to_string(peer));
}

void GroupWatch::watch() {
  Clock::duration lostFor{};
  while (sleepUntilNextLook()) {
    endUnawareProcess();
    if (store.isLost()) {
      lostFor += lookEvery;
      // One that has left in good order ends the group when it is missed.
      if (lostFor > kStoreGrace && !storeHasLeft)
        adopt(describeLostStore());
      continue;
    }
    try {
      look();
    } catch (const std::exception &) {
      // Nobody is left to ask: see above.
    }
  }
}

std::string GroupWatch::describeLostStore() const {
  if (storeHasLeft)
    return "rank 0 of the job has left: its program has ended";
  return std::string(agentHasStore() ? "torchrun's agent" : "rank 0 of the job")
      .append(" does not answer: the process that holds the store of "
              "torch.distributed has ended or is stopped");
}

/// The program hangs, or it is in work of its own or in a collective of its
/// own, which fails when that times out. Counts looks and not time, as a
/// process may be stopped.
void GroupWatch::endUnawareProcess() {
  if (!isUnnoticed())
    return;
  auto says = [&](const std::string &text) {
    std::fputs(std::string("neuroshard: rank ")
                   .append(std::to_string(rank))
                   .append(": ")
                   .append(text)
                   .append("\n")
                   .c_str(),
               stderr);
    std::fflush(stderr);
  };
  bool told = unnoticedFor >= kToldAfter;
  unnoticedFor += lookEvery;
  if (!told && unnoticedFor >= kToldAfter)
    says("the group has ended: " + cause);
  if (unnoticedFor < limits.patience)
    return;
  says("this program has not noticed that its group has ended, for as long as "
       "the group's timeout; its process ends now");
  _exit(1);
}

/// Returns false when the watch is to stop.
bool GroupWatch::sleepUntilNextLook() {
  std::unique_lock lock(mutex);
  return !changed.wait_for(lock, lookEvery, [&] { return stopping; });
}

void GroupWatch::look() {
  int64_t call = store.add(key("news"), 0);
  if (std::exchange(answeredCall, call) != call) {
    if (store.has(key("cause")))
      adopt(store.read(key("cause")));
    if (store.has(key("store-left")))
      storeHasLeft = true;
    readNotices();
    answerCall(call); // last: the rank with the store leaves when all have
  }
  judgeNotices();
  if (Clock::now() - lastBeat < kBeatEvery)
    return;
  beat();
  if (!isNextSilent() || isOver())
    return;
  std::string missing = findMissingRanks();
  if (!missing.empty())
    end(missing);
}

void GroupWatch::answerCall(int64_t call) {
  store.set(key("here", rank),
            std::to_string(call).append(" ").append(std::to_string(exchanges)));
}

void GroupWatch::beat() {
  store.set(key("beat", rank), std::to_string(++beats));
  lastBeat = Clock::now();
}

/// Counts polls and not time: if this process itself was stopped for a while,
/// the other ranks have not been silent.
bool GroupWatch::isNextSilent() {
  if (next == rank)
    return false;
  std::string found = store.read(key("beat", next));
  if (found != nextBeat || found.empty()) {
    nextBeat = found;
    nextSilentFor = {};
    return false;
  }
  if (hasLeft(next)) {
    next = (next + 1) % size;
    nextBeat.clear();
    nextSilentFor = {};
    return false;
  }
  nextSilentFor += std::max<Clock::duration>(kBeatEvery, lookEvery);
  return nextSilentFor >= limits.silence;
}

void GroupWatch::adopt(const std::string &text) {
  {
    std::lock_guard lock(mutex);
    if (!ended)
      cause = text;
    ended = true;
    for (const Messages *messages : awaited)
      for (const auto &message : *messages)
        message->abort();
  }
  changed.notify_all();
}

void GroupWatch::wait(c10d::Work &work, const std::string &user) {
  auto future = work.getFuture();
  future->addCallback([weak = weak_from_this()](c10::ivalue::Future &) {
    auto self = weak.lock(); // the watch may be gone when the work completes
    if (!self)
      return;
    std::lock_guard lock(self->mutex);
    self->changed.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return future->completed() || ended; });
  }
  if (!future->completed())
    throwIfEnded();
  if (!future->hasError())
    return;
  endAfterExchange(future->tryRetrieveErrorMessage(), user);
  throwIfEnded();
}

void GroupWatch::wait(const Messages &messages,
                      std::chrono::milliseconds timeout,
                      const std::string &user) {
  throwIfEnded();
  {
    std::lock_guard lock(mutex);
    awaited.push_back(&messages);
  }
  std::string error;
  try {
    for (const auto &message : messages)
      if (isOver() || !message->wait(timeout))
        break; // aborted
  } catch (const std::exception &thrown) {
    error = thrown.what();
  }
  {
    std::lock_guard lock(mutex);
    std::erase(awaited, &messages);
  }
  if (!error.empty())
    endAfterExchange(error, user);
  throwIfEnded();
}

void GroupWatch::endAfterExchange(const std::string &error,
                                  const std::string &user) noexcept {
  std::string text = std::string("rank ")
                         .append(std::to_string(rank))
                         .append(": an exchange failed: ")
                         .append(error.substr(0, error.find('\n')));
  try {
    for (int peer = 0; peer < size && !isOver(); ++peer)
      if (peer != rank && store.has(closedKey(user, peer)))
        return endAfter(nameRanks({peer}).append(" has closed its tables"));
  } catch (const std::exception &) {
    // endAfter says what is lost.
  }
  endAfter(text, [this] { return findHangingRanks(); });
}

void GroupWatch::markClosed(const std::string &user) noexcept {
  try {
    store.set(closedKey(user, rank), "1");
  } catch (const std::exception &) {
    // Nobody is left to read it.
  }
}

std::string GroupWatch::closedKey(const std::string &user, int peer) const {
  return key("closed").append("/").append(user).append("/").append(
      std::to_string(peer));
}

void GroupWatch::endAfter(const std::string &error) noexcept {
  endAfter(error, [] { return std::string(); });
}

void GroupWatch::endAfter(
    const std::string &error,
    const std::function<std::string()> &findCulprit) noexcept {
  if (isOver())
    return;
  try {
    // A failed exchange fails on all ranks at once: the first two call the
    // roll, the others wait for the cause that those find.
    if (!isFirstCaller() && waitForCause(rollCallTakes + 2s))
      return;
    std::string missing = findMissingRanks();
    if (!missing.empty())
      return end(missing);
    std::string culprit = findCulprit();
    end(culprit.empty() ? error : culprit.append("; ").append(error));
  } catch (const std::exception &) {
    adopt(describeLostStore());
  }
}

bool GroupWatch::isFirstCaller() { return store.add(key("callers"), 1) <= 2; }

bool GroupWatch::waitForCause(Clock::duration limit) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, limit, [&] { return ended; });
}

/// Calls the roll. Returns which ranks do not answer, "" if all do.
std::string GroupWatch::findMissingRanks() {
  int64_t call = store.add(key("news"), 1);
  auto deadline = Clock::now() + rollCallTakes;
  std::vector<int> missing;
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank)
      missing.push_back(peer);
  for (;;) {
    std::erase_if(missing, [&](int peer) { return hasAnswered(peer, call); });
    bool allLeft = std::all_of(missing.begin(), missing.end(),
                               [&](int peer) { return hasLeft(peer); });
    if (allLeft || Clock::now() > deadline || isOver())
      return describeMissing(missing);
    std::this_thread::sleep_for(lookEvery / 2);
  }
}

bool GroupWatch::hasAnswered(int peer, int64_t call) {
  std::string answer = store.read(key("here", peer));
  return !answer.empty() && std::stoll(answer) >= call;
}

bool GroupWatch::hasLeft(int peer) { return store.has(key("left", peer)); }

/// Of ranks that have all answered a roll call: those that have not come to an
/// exchange that this rank is in. "" if there is none.
std::string GroupWatch::findHangingRanks() {
  std::vector<int> behind;
  for (int peer = 0; peer < size; ++peer) {
    int64_t count = exchangesIn(store.read(key("here", peer)));
    if (peer != rank && count >= 0 && count < exchanges)
      behind.push_back(peer);
  }
  if (behind.empty())
    return "";
  return sayOf(behind, " hangs or is slow: it has",
               " hang or are slow: they have")
      .append(" not come to an exchange within the timeout of the group");
}

/// Names the ranks that fell silent; if there are none, those that have left;
/// else those that never came.
std::string GroupWatch::describeMissing(const std::vector<int> &missing) {
  std::vector<int> silent, left, late;
  for (int peer : missing)
    (hasLeft(peer)                  ? left
     : store.has(key("here", peer)) ? silent
                                    : late)
        .push_back(peer);
  if (!silent.empty())
    return sayOf(silent,
                 " does not answer: its process has ended or is stopped",
                 " do not answer: their processes have ended or are stopped");
  if (!left.empty())
    return sayOf(left, " has left: its program has ended",
                 " have left: their programs have ended");
  if (!late.empty())
    return sayOf(
        late,
        " does not answer: its process has ended or never joined the group",
        " do not answer: their processes have ended or never joined the group");
  return "";
}

void GroupWatch::end(const std::string &text) noexcept {
  try {
    std::string first = text;
    try {
      first = store.setFirst(key("cause"), text);
      store.add(key("news"), 1);
    } catch (const std::exception &) {
      // The others notice when this process closes its connections.
    }
    adopt(first);
  } catch (...) {
    std::lock_guard lock(mutex);
    ended = true; // out of memory: the group ends without a text
  }
}

bool GroupWatch::isOver() {
  std::lock_guard lock(mutex);
  return ended;
}

bool GroupWatch::isUnnoticed() {
  std::lock_guard lock(mutex);
  return ended && !noticed;
}

bool GroupWatch::hasEnded() {
  std::lock_guard lock(mutex);
  noticed |= ended;
  return ended;
}

std::string GroupWatch::causeOfEnd() {
  if (!hasEnded())
    return "";
  std::lock_guard lock(mutex);
  return cause.empty() ? "the group has ended" : cause;
}

void GroupWatch::throwIfEnded() {
  std::string text = causeOfEnd();
  if (!text.empty())
    throw CommunicatorError(text);
}

} // namespace neuroshard::runtime
