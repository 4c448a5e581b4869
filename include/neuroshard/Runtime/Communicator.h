//===- Communicator.h - Collectives between the devices --------*- C++ -*-===//
//
// The collectives that the runtime needs from a group of ranks. Both sides know
// all sizes, in bytes per peer, so that threads of one process can implement
// the interface as well as alltoall_base with split sizes. Every rank starts
// the same collectives in the same order.
//
// Messages lie in memory of the host, or in that of the device. The latter are
// sent and received in the order of the device's work: what was started before
// has written them, and what is started after wait() reads them.
//
// A rank that cannot go on calls abort. Every wait of every rank then throws
// CommunicatorError with that rank's cause, so that no rank waits for ever.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_COMMUNICATOR_H
#define NEUROSHARD_RUNTIME_COMMUNICATOR_H

#include "neuroshard/Runtime/Buffer.h"

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

/// Thrown after the group was aborted; what() is the cause of the rank that
/// aborted it.
class NSRT_SHARED_TYPE CommunicatorError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// What messages are. In memory of the host those of one kind arrive in their
/// order, whatever is sent of other kinds, so that a rank that calls in another
/// order than others is told by the header of its ids, and no message is taken
/// for one of another kind. Second hops are those of relays; row sums and
/// totals are those of replicated tables (ReplicaUpdate.h), numbers and sums of
/// copies those that copies of a shard exchange; parts and averages those of
/// copies that drift.
enum class MessageKind {
  Ids,
  HeadersSecondHop,
  IdsSecondHop,
  Results,
  ResultsSecondHop,
  Gradients,
  GradientsSecondHop,
  RowSums,
  RowTotals,
  CopyNumbers,
  CopySums,
  CopyParts,
  CopyAverages,
  Norms,
  WeightsGradient
};
inline constexpr int kNumMessageKinds =
    static_cast<int>(MessageKind::WeightsGradient) + 1;

/// Whether relays send it on.
constexpr bool isSecondHop(MessageKind kind) {
  return kind == MessageKind::HeadersSecondHop ||
         kind == MessageKind::IdsSecondHop ||
         kind == MessageKind::ResultsSecondHop ||
         kind == MessageKind::GradientsSecondHop;
}

/// Where a message lies, on both sides.
enum class MessageMemory { Host, Device };

/// Bytes from the begin of a received message to that of the next, in memory of
/// a device: kernels read values of up to 16 bytes.
inline int64_t roomOfMessage(int64_t bytes) { return (bytes + 15) / 16 * 16; }

/// A started collective. May be destroyed without waiting.
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
  /// Whether messages may be MessageMemory::Device.
  virtual bool carriesDeviceMemory() const { return false; }

  /// Messages in memory of the host may be received into buffers of `host`,
  /// which live as long as this. Called before the first exchange, if at all.
  virtual void receiveInto(BufferSource &host) { (void)host; }

  /// Sends consecutive slices of `send` to the ranks in order, sendBytes[p]
  /// bytes to rank p, and receives receiveBytes[p] bytes from rank p. The
  /// communicator shares `send` as long as it needs it; the caller must not
  /// change it any more.
  virtual std::unique_ptr<CommunicatorRequest>
  startAllToAll(MessageKind kind, MessageMemory memory, SharedBytes send,
                std::span<const int64_t> sendBytes,
                std::span<const int64_t> receiveBytes) = 0;

  /// Sends `sendBytes` bytes to every rank.
  virtual std::unique_ptr<CommunicatorRequest>
  startAllGather(MessageKind kind, MessageMemory memory, SharedBytes send,
                 int64_t sendBytes, std::span<const int64_t> receiveBytes) = 0;

  /// Ends the group because of `cause`; the first cause stays.
  virtual void abort(const std::string &cause) noexcept = 0;
  /// Whether a rank has ended the group.
  virtual bool ended() const = 0;

  /// Called at the begin and end of a rank's step. If a rank leaves a step
  /// without sending what others wait for in it, the group is aborted.
  virtual void enterStep() {}
  virtual void leaveStep() noexcept {}
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_COMMUNICATOR_H
