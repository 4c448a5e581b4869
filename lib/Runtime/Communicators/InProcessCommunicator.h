//===- InProcessCommunicator.h - Ranks that are threads --------*- C++ -*-===//
//
// A communicator for devices of one process whose memory is the host's.
// Receivers read a sender's buffer in place and share its ownership: nothing is
// copied, and no sender waits for its receivers.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_COMMUNICATORS_INPROCESSCOMMUNICATOR_H
#define NEUROSHARD_LIB_RUNTIME_COMMUNICATORS_INPROCESSCOMMUNICATOR_H

#include "neuroshard/Runtime/Communicator.h"

#include <condition_variable>
#include <map>
#include <mutex>

namespace neuroshard::runtime {

/// The state shared by the ranks of one world.
class InProcessGroup : public std::enable_shared_from_this<InProcessGroup> {
public:
  explicit InProcessGroup(int size);

  /// The end of rank `rank`; one per rank.
  std::unique_ptr<Communicator> makeCommunicator(int rank);

  void abort(const std::string &cause) noexcept;
  /// Why the group was aborted, "" if it was not.
  std::string abortCause() const;
  /// Makes the group usable again. No rank may be in a step.
  void reset();
  /// Returns when no rank is in a step.
  void waitForIdle();

private:
  friend class InProcessCommunicator;
  friend class InProcessRequest;

  /// One collective: slices[s][r] is what rank s sends to rank r.
  struct Operation {
    explicit Operation(int size) : slices(size), owners(size) {}
    std::vector<std::vector<std::span<const std::byte>>> slices;
    std::vector<SharedBytes> owners;
    int started = 0;
    bool cancelled = false;
  };

  std::shared_ptr<Operation>
  post(int rank, SharedBytes send,
       std::vector<std::span<const std::byte>> slices);
  void waitForAll(Operation &operation, int rank);
  void throwIfAborted() const;
  void enterStep(int rank);
  void leaveStep(int rank) noexcept;

  const int size;
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool aborted = false;
  std::string cause;
  /// Operations that not all ranks have started, by number.
  std::map<uint64_t, std::shared_ptr<Operation>> operations;
  std::vector<uint64_t> numStarted; ///< operations per rank.
  std::vector<uint64_t> stepsEntered;
  std::vector<uint64_t> stepsLeft;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_COMMUNICATORS_INPROCESSCOMMUNICATOR_H
