//===- InProcessCommunicator.cpp - Ranks that are threads -----------------===//
//
// One mutex guards all state: a step has about ten collectives, so more locks
// would gain nothing. No wait has a timeout: it ends with the data, with an
// abort, or because a rank has left the step without sending.
//
//===----------------------------------------------------------------------===//

#include "InProcessCommunicator.h"
#include "neuroshard/Artifact/Error.h"

#include <utility>

namespace neuroshard::runtime {

using Slices = std::vector<std::span<const std::byte>>;

class InProcessRequest : public CommunicatorRequest {
public:
  InProcessRequest(std::shared_ptr<InProcessGroup> group,
                   std::shared_ptr<InProcessGroup::Operation> operation,
                   int rank, std::span<const int64_t> receiveBytes)
      : group(std::move(group)), operation(std::move(operation)), rank(rank),
        expected(receiveBytes.begin(), receiveBytes.end()) {}

  const Slices &wait() override {
    if (!received.empty())
      return received;
    group->waitForAll(*operation, rank);
    Slices slices;
    for (size_t peer = 0; peer < expected.size(); ++peer) {
      slices.push_back(operation->slices[peer][rank]);
      if (static_cast<int64_t>(slices[peer].size()) != expected[peer])
        fail("rank ", rank, " expected ", expected[peer], " bytes from rank ",
             peer, ", which sent ", slices[peer].size());
    }
    received = std::move(slices);
    return received;
  }

private:
  std::shared_ptr<InProcessGroup> group;
  std::shared_ptr<InProcessGroup::Operation> operation;
  int rank;
  std::vector<int64_t> expected;
  Slices received;
};

class InProcessCommunicator : public Communicator {
public:
  InProcessCommunicator(std::shared_ptr<InProcessGroup> group, int rank)
      : group(std::move(group)), ownRank(rank) {}

  int rank() const override { return ownRank; }
  int size() const override { return group->size; }

  std::unique_ptr<CommunicatorRequest>
  startAllToAll(MessageKind, MessageMemory, SharedBytes send,
                std::span<const int64_t> sendBytes,
                std::span<const int64_t> receiveBytes) override {
    Slices slices;
    const std::byte *data = send.get();
    for (int64_t bytes : sendBytes) {
      slices.emplace_back(data, static_cast<size_t>(bytes));
      data += bytes;
    }
    return start(std::move(send), std::move(slices), receiveBytes);
  }

  std::unique_ptr<CommunicatorRequest>
  startAllGather(MessageKind, MessageMemory, SharedBytes send,
                 int64_t sendBytes,
                 std::span<const int64_t> receiveBytes) override {
    Slices slices(static_cast<size_t>(size()),
                  {send.get(), static_cast<size_t>(sendBytes)});
    return start(std::move(send), std::move(slices), receiveBytes);
  }

  void abort(const std::string &cause) noexcept override {
    group->abort(cause);
  }
  bool ended() const override { return !group->abortCause().empty(); }
  void enterStep() override { group->enterStep(ownRank); }
  void leaveStep() noexcept override {
    auto keep = group; // the world may be freed once the last rank has left
    keep->leaveStep(ownRank);
  }

private:
  std::unique_ptr<CommunicatorRequest>
  start(SharedBytes send, Slices slices,
        std::span<const int64_t> receiveBytes) {
    return std::make_unique<InProcessRequest>(
        group, group->post(ownRank, std::move(send), std::move(slices)),
        ownRank, receiveBytes);
  }

  std::shared_ptr<InProcessGroup> group;
  int ownRank;
};

InProcessGroup::InProcessGroup(int size)
    : size(size), numStarted(size), stepsEntered(size), stepsLeft(size) {}

std::unique_ptr<Communicator> InProcessGroup::makeCommunicator(int rank) {
  return std::make_unique<InProcessCommunicator>(shared_from_this(), rank);
}

std::shared_ptr<InProcessGroup::Operation>
InProcessGroup::post(int rank, SharedBytes send, Slices slices) {
  std::lock_guard lock(mutex);
  throwIfAborted();
  uint64_t number = numStarted[rank]++;
  std::shared_ptr<Operation> &entry = operations[number];
  if (!entry)
    entry = std::make_shared<Operation>(size);
  std::shared_ptr<Operation> operation = entry;
  operation->slices[rank] = std::move(slices);
  operation->owners[rank] = std::move(send);
  if (++operation->started == size) {
    operations.erase(number);
    changed.notify_all();
  }
  return operation;
}

void InProcessGroup::waitForAll(Operation &operation, int rank) {
  std::unique_lock lock(mutex);
  for (;;) {
    if (operation.started == size)
      return;
    throwIfAborted();
    if (operation.cancelled)
      throw CommunicatorError(
          "the exchange was cancelled with an earlier step");
    for (int peer = 0; peer < size; ++peer)
      if (operation.slices[peer].empty() &&
          stepsLeft[peer] >= stepsEntered[rank] && stepsEntered[rank] > 0) {
        lock.unlock();
        abort("rank " + std::to_string(peer) +
              ": left the step before it had sent what rank " +
              std::to_string(rank) + " waits for");
        lock.lock();
        throwIfAborted();
      }
    changed.wait(lock);
  }
}

void InProcessGroup::throwIfAborted() const {
  if (aborted)
    throw CommunicatorError(cause);
}

void InProcessGroup::abort(const std::string &text) noexcept {
  std::lock_guard lock(mutex);
  if (aborted)
    return;
  aborted = true;
  try {
    cause = text;
  } catch (...) {
    // Out of memory: the group ends without a text.
  }
  changed.notify_all();
}

std::string InProcessGroup::abortCause() const {
  std::lock_guard lock(mutex);
  return aborted ? cause : std::string();
}

void InProcessGroup::reset() {
  std::lock_guard lock(mutex);
  for (auto &[number, operation] : operations)
    operation->cancelled = true;
  operations.clear();
  numStarted.assign(static_cast<size_t>(size), 0);
  stepsEntered.assign(static_cast<size_t>(size), 0);
  stepsLeft.assign(static_cast<size_t>(size), 0);
  aborted = false;
  cause.clear();
}

void InProcessGroup::waitForIdle() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return stepsEntered == stepsLeft; });
}

void InProcessGroup::enterStep(int rank) {
  std::lock_guard lock(mutex);
  ++stepsEntered[rank];
}

void InProcessGroup::leaveStep(int rank) noexcept {
  std::lock_guard lock(mutex);
  ++stepsLeft[rank];
  changed.notify_all();
}

} // namespace neuroshard::runtime
