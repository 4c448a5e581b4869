//===- PeerMessages.h - Exchanges as messages of pairs of ranks -*- C++ -*-===//
//
// Exchanges over Gloo as messages between pairs of ranks, receives first. A
// receive sends a notice by the connection that also carries the data. Gloo's
// own all-to-all begins to send first; to a peer that is ready, the notice then
// waits behind all data, and the two directions take turns. Receives that are
// made long before have sent their notices by then.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_GROUP_PEERMESSAGES_H
#define NEUROSHARD_LIB_RUNTIMETORCH_GROUP_PEERMESSAGES_H

#include "GroupWatch.h"
#include "neuroshard/Runtime/Communicator.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace neuroshard::runtime {

class DroppedMessages;

/// A tensor on `bytes` that shares their ownership.
at::Tensor wrapBytes(SharedBytes bytes, int64_t count, c10::Device place);

/// An exchange of a rank whose receives are made.
class PeerRequest : public CommunicatorRequest {
public:
  /// Sends sent[p] to rank p; to be called once, before wait(). Throws what
  /// c10d throws.
  virtual void send(const std::vector<at::Tensor> &sent) = 0;
};

/// One rank's messages, in memory of the host.
class PeerMessages {
public:
  PeerMessages(c10::intrusive_ptr<c10d::ProcessGroup> group,
               std::shared_ptr<GroupWatch> watch);

  /// Buffers for what is received; else it is allocated each time.
  void receiveInto(BufferSource &source) { buffers = &source; }

  /// Sends sent[p] to rank p and receives receiveBytes[p] bytes from it. All
  /// ranks call this in the same order for messages of one kind. Throws what
  /// c10d throws.
  std::unique_ptr<CommunicatorRequest>
  exchange(MessageKind kind, const std::vector<at::Tensor> &sent,
           std::span<const int64_t> receiveBytes);

  /// The same in two steps: makes the receives.
  std::unique_ptr<PeerRequest> expect(MessageKind kind,
                                      std::span<const int64_t> receiveBytes);

private:
  /// Memory for the bytes of each other rank.
  std::vector<at::Tensor>
  makeRooms(std::span<const int64_t> receiveBytes) const;

  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::shared_ptr<GroupWatch> watch;
  BufferSource *buffers = nullptr;
  int64_t exchanges = 0; ///< so far.
  /// Shared with requests, which may outlive this.
  std::shared_ptr<DroppedMessages> dropped;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_GROUP_PEERMESSAGES_H
