//===- ProcessGroupCommunicator.h - Ranks of torch.distributed -*- C++ -*-===//
//
// The runtime's communicator on a process group of c10d.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_GROUP_PROCESSGROUPCOMMUNICATOR_H
#define NEUROSHARD_LIB_RUNTIMETORCH_GROUP_PROCESSGROUPCOMMUNICATOR_H

#include "PeerMessages.h"

#include <optional>

namespace neuroshard::runtime {

class ProcessGroupCommunicator : public Communicator {
public:
  /// The group that torch.distributed knows by this name. Throws if there is
  /// none, or it cannot exchange tensors on the CPU. `watch`: of these ranks.
  /// `place`: of messages in memory of the device; on a GPU they follow the
  /// current stream. `secondStages`: the group that second hops in memory of
  /// the device use, so that they go beside first ones, which one group would
  /// send one after the other; "": the same group.
  ProcessGroupCommunicator(const std::string &groupName,
                           std::shared_ptr<GroupWatch> watch,
                           c10::Device place = c10::kCPU,
                           const std::string &secondStages = "");
  ~ProcessGroupCommunicator() override;

  int rank() const override { return group->getRank(); }
  int size() const override { return group->getSize(); }
  bool carriesDeviceMemory() const override { return carriesPlace; }
  void receiveInto(BufferSource &host) override {
    if (messages)
      messages->receiveInto(host);
  }

  std::unique_ptr<CommunicatorRequest>
  startAllToAll(MessageKind kind, MessageMemory memory, SharedBytes send,
                std::span<const int64_t> sendBytes,
                std::span<const int64_t> receiveBytes) override;
  std::unique_ptr<CommunicatorRequest>
  startAllGather(MessageKind kind, MessageMemory memory, SharedBytes send,
                 int64_t sendBytes,
                 std::span<const int64_t> receiveBytes) override;

  void abort(const std::string &cause) noexcept override { watch->end(cause); }
  bool ended() const override { return watch->hasEnded(); }

private:
  const std::string &name() const { return group->getGroupName(); }
  c10::Device placeOf(MessageMemory memory) const;
  std::unique_ptr<CommunicatorRequest>
  swapOnDevice(MessageKind kind, SharedBytes send,
               std::span<const int64_t> sendBytes,
               std::span<const int64_t> receiveBytes);
  /// Starts an exchange; one that cannot start has failed.
  template <typename Function> auto start(const Function &exchange);

  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::ProcessGroup> secondGroup; ///< or the same.
  /// Shared with requests, which may outlive the communicator.
  std::shared_ptr<GroupWatch> watch;
  c10::Device place;
  bool carriesPlace;
  /// How Gloo exchanges memory of the host; none with another backend.
  std::optional<PeerMessages> messages;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_GROUP_PROCESSGROUPCOMMUNICATOR_H
