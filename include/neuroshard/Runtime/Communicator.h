//===- Communicator.h - Bytes between the devices --------------*- C++ -*-===//
//
// What the runtime needs from a group of ranks. Counts are bytes per peer and
// sizes are known on both sides, so that the interface maps onto
// alltoall_base with split sizes as well as onto threads of one process.
// Every rank starts the same collectives in the same order.
//
// A rank that cannot go on calls abort; then every wait of every rank throws
// CommunicatorError with that rank's cause, and no rank waits for ever.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_COMMUNICATOR_H
#define NEUROSHARD_RUNTIME_COMMUNICATOR_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace neuroshard::runtime {

// The runtime hides its symbols; what other libraries implement or throw must
// be one type in all of them.
#define NSRT_SHARED_TYPE __attribute__((visibility("default")))

/// The group was aborted; what() is the cause on the rank that ended it.
class NSRT_SHARED_TYPE CommunicatorError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A collective under way. Destroying it without waiting is allowed.
class NSRT_SHARED_TYPE CommunicatorRequest {
public:
  virtual ~CommunicatorRequest() = default;

  /// Returns the data of each rank, valid until the request is destroyed.
  /// Throws CommunicatorError.
  virtual const std::vector<std::span<const std::byte>> &wait() = 0;
};

using SharedBytes = std::shared_ptr<const std::byte>;

/// One rank's end of the group. Used by one thread at a time.
class NSRT_SHARED_TYPE Communicator {
public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Sends the p-th of consecutive pieces of `send` (sendBytes[p] bytes) to
  /// rank p and receives receiveBytes[p] bytes from it. The communicator
  /// keeps `send` alive as long as it needs it; it must not change any more.
  virtual std::unique_ptr<CommunicatorRequest>
  startAllToAll(SharedBytes send, std::span<const int64_t> sendBytes,
                std::span<const int64_t> receiveBytes) = 0;

  /// Sends `sendBytes` bytes to every rank.
  virtual std::unique_ptr<CommunicatorRequest>
  startAllGather(SharedBytes send, int64_t sendBytes,
                 std::span<const int64_t> receiveBytes) = 0;

  /// Ends the group because of `cause`; the first cause stays.
  virtual void abort(const std::string &cause) noexcept = 0;
  /// Whether a rank has ended the group.
  virtual bool ended() const = 0;

  /// Bracket a rank's step. A rank that leaves a step without having sent
  /// what others wait for in the same step aborts the group.
  virtual void enterStep() {}
  virtual void leaveStep() noexcept {}
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_COMMUNICATOR_H
