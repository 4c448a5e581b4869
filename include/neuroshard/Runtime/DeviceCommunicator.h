//===- DeviceCommunicator.h - Base of communicators of devices --*- C++ -*-===//
//
// A communicator that carries messages in memory of a device itself, and leaves
// those of the host, and the end of the group, to another one.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_DEVICECOMMUNICATOR_H
#define NEUROSHARD_RUNTIME_DEVICECOMMUNICATOR_H

#include "neuroshard/Runtime/Communicator.h"

#include <memory>
#include <string>
#include <utility>

namespace neuroshard::runtime {

class DeviceCommunicator : public Communicator {
public:
  explicit DeviceCommunicator(std::unique_ptr<Communicator> host)
      : host(std::move(host)) {}

  int rank() const override { return host->rank(); }
  int size() const override { return host->size(); }
  bool carriesDeviceMemory() const override { return true; }

  std::unique_ptr<CommunicatorRequest>
  startAllToAll(MessageKind kind, MessageMemory memory, SharedBytes send,
                std::span<const int64_t> sendBytes,
                std::span<const int64_t> receiveBytes) override {
    if (memory == MessageMemory::Device)
      return startOnDevice(kind, std::move(send), sendBytes, receiveBytes);
    return host->startAllToAll(kind, memory, std::move(send), sendBytes,
                               receiveBytes);
  }
  std::unique_ptr<CommunicatorRequest>
  startAllGather(MessageKind kind, MessageMemory memory, SharedBytes send,
                 int64_t sendBytes,
                 std::span<const int64_t> receiveBytes) override {
    if (memory == MessageMemory::Device)
      return gatherOnDevice(kind, std::move(send), sendBytes, receiveBytes);
    return host->startAllGather(kind, memory, std::move(send), sendBytes,
                                receiveBytes);
  }

  void abort(const std::string &cause) noexcept override { host->abort(cause); }
  bool ended() const override { return host->ended(); }
  void enterStep() override { host->enterStep(); }
  void leaveStep() noexcept override { host->leaveStep(); }

protected:
  /// startAllToAll and startAllGather of messages in memory of the device.
  virtual std::unique_ptr<CommunicatorRequest>
  startOnDevice(MessageKind kind, SharedBytes send,
                std::span<const int64_t> sendBytes,
                std::span<const int64_t> receiveBytes) = 0;
  virtual std::unique_ptr<CommunicatorRequest>
  gatherOnDevice(MessageKind kind, SharedBytes send, int64_t sendBytes,
                 std::span<const int64_t> receiveBytes) = 0;

  std::unique_ptr<Communicator> host;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_DEVICECOMMUNICATOR_H
