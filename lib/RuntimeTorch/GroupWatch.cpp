//===- GroupWatch.cpp - Heartbeats and failures of ranks ------------------===//
//
// Keys in the store: `cause`, the text; `news`, a number that grows with every
// roll call and cause, so that a poll is one request; `here/R`, the last roll
// call that rank R's thread has answered; `beat/R`, its heartbeat; `left/R`,
// set when it has left in good order. Each rank watches the heartbeat of the
// next one, so that requests grow with the ranks and not with their square.
//
//===----------------------------------------------------------------------===//

#include "GroupWatch.h"
#include "neuroshard/Runtime/Communicator.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

namespace neuroshard::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto kBeatEvery = 2s;
/// Of ranks that end in good order, the one with the store may be first.
constexpr auto kStoreGrace = 3s;
/// How long the store is kept for ranks that may have gone as well.
constexpr auto kStoreKept = 5s;

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

std::string describeLostStore() {
  return std::string(agentHasStore() ? "torchrun's agent" : "rank 0 of the job")
      .append(" does not answer: the process that holds the store of "
              "torch.distributed has ended");
}

/// A connection of our own with a short timeout. The store's own timeout allows
/// for ranks that come late: we would retry as long when its process is gone.
c10::intrusive_ptr<c10d::Store> connect(c10d::Store &store) {
  c10d::StoreTimeoutGuard guard(store, 10s);
  return store.clone();
}

} // namespace

GroupWatch::GroupWatch(const c10::intrusive_ptr<c10d::Store> &groupStore,
                       std::string keyPrefix, int rank, int size,
                       std::chrono::milliseconds silence)
    : prefix(std::move(keyPrefix)), rank(rank), size(size),
      lookEvery(lookInterval(size)), rollCallTakes(3s + 10 * lookEvery),
      silence(silence), next((rank + 1) % size) {
  try {
    store = connect(*groupStore);
    store->set(key("here", rank), "0");
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
  if (storeIsLost)
    return;
  try {
    store->set(key("left", rank), "1");
    waitForOthers();
  } catch (const std::exception &) {
    storeIsLost = true; // and nobody is left to read the key
  }
}

/// The process with the store leaves last if the others are about to leave,
/// too: they read the cause there, and torch warns of stores that vanish.
void GroupWatch::waitForOthers() {
  if (rank != 0 || agentHasStore())
    return;
  int64_t news = store->add(key("news"), 0);
  bool ended = hasEnded();
  auto deadline = Clock::now() + kStoreKept;
  for (int peer = 1; peer < size; ++peer)
    while (!hasLeft(peer) && !(ended && hasAnswered(peer, news))) {
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

/// Returns "" if there is no such key; get would wait for it.
std::string GroupWatch::readKey(const std::string &name) {
  return store->check({name}) ? store->get_to_str(name) : std::string();
}

void GroupWatch::watch() {
  Clock::duration lostFor{};
  while (sleepUntilNextLook()) {
    if (storeIsLost) { // a connection that has failed once does not come back
      lostFor += lookEvery;
      if (lostFor > kStoreGrace)
        return adopt(describeLostStore());
      continue;
    }
    try {
      look();
    } catch (const std::exception &) {
      storeIsLost = true;
    }
  }
}

/// Returns false when the watch is to stop.
bool GroupWatch::sleepUntilNextLook() {
  std::unique_lock lock(mutex);
  return !changed.wait_for(lock, lookEvery, [&] { return stopping; });
}

void GroupWatch::look() {
  int64_t call = store->add(key("news"), 0);
  bool isNew = std::exchange(answeredCall, call) != call;
  if (isNew && store->check({key("cause")}))
    adopt(store->get_to_str(key("cause")));
  if (isNew) // last: the rank with the store leaves when all have answered
    store->set(key("here", rank), std::to_string(call));
  if (Clock::now() - lastBeat < kBeatEvery)
    return;
  beat();
  if (!isNextSilent() || hasEnded())
    return;
  std::string missing = findMissingRanks();
  if (!missing.empty())
    end(missing);
}

void GroupWatch::beat() {
  store->set(key("beat", rank), std::to_string(++beats));
  lastBeat = Clock::now();
}

/// Counts polls and not time: if this process itself was stopped for a while,
/// the other ranks have not been silent.
bool GroupWatch::isNextSilent() {
  if (next == rank)
    return false;
  std::string found = readKey(key("beat", next));
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
  return nextSilentFor >= silence;
}

void GroupWatch::adopt(const std::string &text) {
  {
    std::lock_guard lock(mutex);
    if (!ended)
      cause = text;
    ended = true;
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

void GroupWatch::endAfterExchange(const std::string &error,
                                  const std::string &user) noexcept {
  std::string text = std::string("rank ")
                         .append(std::to_string(rank))
                         .append(": an exchange failed: ")
                         .append(error.substr(0, error.find('\n')));
  try {
    for (int peer = 0; peer < size && !storeIsLost && !hasEnded(); ++peer)
      if (peer != rank && store->check({closedKey(user, peer)}))
        text = std::string("rank ")
                   .append(std::to_string(peer))
                   .append(" has closed its tables");
  } catch (const std::exception &) {
    storeIsLost = true;
  }
  endAfter(text);
}

void GroupWatch::markClosed(const std::string &user) noexcept {
  try {
    store->set(closedKey(user, rank), "1");
  } catch (const std::exception &) {
    // Nobody is left to read it.
  }
}

std::string GroupWatch::closedKey(const std::string &user, int peer) const {
  return key("closed").append("/").append(user).append("/").append(
      std::to_string(peer));
}

void GroupWatch::endAfter(const std::string &error) noexcept {
  if (hasEnded())
    return;
  if (storeIsLost)
    return adopt(describeLostStore());
  try {
    // A failed exchange fails on all ranks at once: the first two call the
    // roll, the others wait for the cause that those find.
    if (!isFirstCaller() && waitForCause(rollCallTakes + 2s))
      return;
    std::string missing = findMissingRanks();
    end(missing.empty() ? error : missing);
  } catch (const std::exception &) {
    storeIsLost = true;
    adopt(describeLostStore());
  }
}

bool GroupWatch::isFirstCaller() { return store->add(key("callers"), 1) <= 2; }

bool GroupWatch::waitForCause(Clock::duration limit) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, limit, [&] { return ended; });
}

/// Calls the roll. Returns which ranks do not answer, "" if all do.
std::string GroupWatch::findMissingRanks() {
  int64_t call = store->add(key("news"), 1);
  auto deadline = Clock::now() + rollCallTakes;
  std::vector<int> missing;
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank)
      missing.push_back(peer);
  for (;;) {
    std::erase_if(missing, [&](int peer) { return hasAnswered(peer, call); });
    bool allLeft = std::all_of(missing.begin(), missing.end(),
                               [&](int peer) { return hasLeft(peer); });
    if (allLeft || Clock::now() > deadline || hasEnded())
      return describeMissing(missing);
    std::this_thread::sleep_for(lookEvery / 2);
  }
}

bool GroupWatch::hasAnswered(int peer, int64_t call) {
  std::string answer = readKey(key("here", peer));
  return !answer.empty() && std::stoll(answer) >= call;
}

bool GroupWatch::hasLeft(int peer) { return store->check({key("left", peer)}); }

/// Names the ranks that fell silent; if there are none, those that have left;
/// else those that never came.
std::string GroupWatch::describeMissing(const std::vector<int> &missing) {
  std::string silent, left, late;
  for (int peer : missing) {
    std::string &list = hasLeft(peer)                       ? left
                        : store->check({key("here", peer)}) ? silent
                                                            : late;
    list.append(list.empty() ? "rank " : ", ").append(std::to_string(peer));
  }
  if (!silent.empty())
    return silent.append(
        " does not answer: its process has ended or is stopped");
  if (!left.empty())
    return left.append(" has left: its program has ended");
  if (!late.empty())
    return late.append(
        " does not answer: its process has ended or never joined the group");
  return "";
}

void GroupWatch::end(const std::string &text) noexcept {
  try {
    std::string first = text;
    if (storeIsLost)
      return adopt(first);
    try {
      std::vector<uint8_t> none;
      std::vector<uint8_t> mine(text.begin(), text.end());
      std::vector<uint8_t> kept = store->compareSet(key("cause"), none, mine);
      if (!kept.empty())
        first.assign(kept.begin(), kept.end());
      store->add(key("news"), 1);
    } catch (const std::exception &) {
      // The others notice when this process closes its connections.
      storeIsLost = true;
    }
    adopt(first);
  } catch (...) {
    std::lock_guard lock(mutex);
    ended = true; // out of memory: the group ends without a text
  }
}

bool GroupWatch::hasEnded() {
  std::lock_guard lock(mutex);
  return ended;
}

std::string GroupWatch::causeOfEnd() {
  std::lock_guard lock(mutex);
  if (!ended)
    return "";
  return cause.empty() ? "the group has ended" : cause;
}

void GroupWatch::throwIfEnded() {
  std::string text = causeOfEnd();
  if (!text.empty())
    throw CommunicatorError(text);
}

} // namespace neuroshard::runtime
