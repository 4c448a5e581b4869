//===- GroupWatch.cpp - Why a group of processes has ended ----------------===//
//
// Keys in the store: `cause`, the text; `roll_call`, set when a collective
// failed; `here/R`, the answer of rank R's thread. A rank that does not answer
// has ended or is stopped, and is named.
//
//===----------------------------------------------------------------------===//

#include "GroupWatch.h"
#include "neuroshard/Runtime/Communicator.h"

#include <exception>

namespace neuroshard::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto lookEvery = 200ms;
/// A living rank answers within lookEvery; the rest is for a busy machine.
constexpr auto rollCallTakes = 3s;

const std::string causeKey = "neuroshard/cause";
const std::string rollCallKey = "neuroshard/roll_call";

std::string hereKey(int rank) {
  return std::string("neuroshard/here/").append(std::to_string(rank));
}

/// Without the addresses and the stack that c10d's messages may end with.
std::string firstLine(const std::string &text) {
  return text.substr(0, text.find('\n'));
}

} // namespace

GroupWatch::GroupWatch(const c10::intrusive_ptr<c10d::Store> &groupStore,
                       int rank, int size)
    : rank(rank), size(size), store(groupStore->clone()) {
  watcher = std::thread([this] { watch(); });
}

GroupWatch::~GroupWatch() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  watcher.join();
}

void GroupWatch::watch() {
  c10::intrusive_ptr<c10d::Store> own;
  try {
    own = store->clone(); // the other one may block in a call
  } catch (const std::exception &) {
    return;
  }
  bool answered = false;
  for (;;) {
    {
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, lookEvery, [&] { return stopping; }))
        return;
    }
    try {
      if (!answered && own->check({rollCallKey})) {
        own->set(hereKey(rank), "1");
        answered = true;
      }
      if (own->check({causeKey}))
        return adopt(own->get_to_str(causeKey));
    } catch (const std::exception &) {
      return; // The store's process is gone; connections tell the rest.
    }
  }
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

void GroupWatch::wait(c10d::Work &work) {
  auto future = work.getFuture();
  future->addCallback([weak = weak_from_this()](c10::ivalue::Future &) {
    auto self = weak.lock(); // a request may be dropped before it completes
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
  if (future->hasError())
    endBecause(firstLine(future->tryRetrieveErrorMessage()));
}

void GroupWatch::endBecause(const std::string &error) {
  std::string missing = findMissingRanks();
  end(missing.empty() ? std::string("rank ")
                            .append(std::to_string(rank))
                            .append(": an exchange failed: ")
                            .append(error)
                      : missing);
  throwIfEnded();
}

std::string GroupWatch::findMissingRanks() {
  std::string missing;
  try {
    store->set(rollCallKey, "1");
    auto deadline = std::chrono::steady_clock::now() + rollCallTakes;
    std::vector<bool> here(static_cast<size_t>(size));
    here[static_cast<size_t>(rank)] = true;
    for (bool all = false; !all;) {
      all = true;
      for (int peer = 0; peer < size; ++peer)
        if (!here[size_t(peer)])
          all &= here[size_t(peer)] = store->check({hereKey(peer)});
      if (std::chrono::steady_clock::now() > deadline)
        break;
      if (!all)
        std::this_thread::sleep_for(50ms);
    }
    for (int peer = 0; peer < size; ++peer)
      if (!here[size_t(peer)])
        missing.append(missing.empty() ? "" : ", ")
            .append(std::to_string(peer));
  } catch (const std::exception &) {
    return "the process that holds the group's store has ended";
  }
  if (missing.empty())
    return missing;
  return std::string("rank ").append(missing).append(
      " does not answer: its process has ended or is stopped");
}

void GroupWatch::end(const std::string &text) noexcept {
  try {
    std::string first = text;
    try {
      std::vector<uint8_t> none;
      std::vector<uint8_t> mine(text.begin(), text.end());
      std::vector<uint8_t> kept = store->compareSet(causeKey, none, mine);
      if (!kept.empty())
        first.assign(kept.begin(), kept.end());
    } catch (const std::exception &) {
      // No store: the others notice when this process closes its connections.
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

void GroupWatch::throwIfEnded() {
  std::lock_guard lock(mutex);
  if (ended)
    throw CommunicatorError(cause.empty() ? "the group has ended" : cause);
}

} // namespace neuroshard::runtime
