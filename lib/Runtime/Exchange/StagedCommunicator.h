//===- StagedCommunicator.h - Messages by way of the host -------*- C++ -*-===//
//
// A communicator for devices with their own memory over one that carries
// messages of the host alone: what a device sends is copied to the host first,
// and what it receives from there.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_STAGEDCOMMUNICATOR_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_STAGEDCOMMUNICATOR_H

#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/Buffer.h"
#include "neuroshard/Runtime/Communicator.h"

#include <memory>
#include <string>

namespace neuroshard::runtime {

class StagedCommunicator : public Communicator {
public:
  /// The buffers are in memory of the device and of the host, and outlive this
  /// object.
  StagedCommunicator(std::shared_ptr<DeviceMemory> memory,
                     BufferSource &deviceBuffers, BufferSource &hostBuffers,
                     std::unique_ptr<Communicator> host)
      : memory(std::move(memory)), deviceBuffers(deviceBuffers),
        hostBuffers(hostBuffers), host(std::move(host)) {}

  int rank() const override { return host->rank(); }
  int size() const override { return host->size(); }
  bool carriesDeviceMemory() const override { return true; }

  std::unique_ptr<CommunicatorRequest>
  startAllToAll(MessageMemory memory, SharedBytes send,
                std::span<const int64_t> sendBytes,
                std::span<const int64_t> receiveBytes) override;
  std::unique_ptr<CommunicatorRequest>
  startAllGather(MessageMemory memory, SharedBytes send, int64_t sendBytes,
                 std::span<const int64_t> receiveBytes) override;

  void abort(const std::string &cause) noexcept override { host->abort(cause); }
  bool ended() const override { return host->ended(); }
  void enterStep() override { host->enterStep(); }
  void leaveStep() noexcept override { host->leaveStep(); }

private:
  SharedBytes copyToHost(const std::byte *message, int64_t bytes);
  std::unique_ptr<CommunicatorRequest>
  receive(std::unique_ptr<CommunicatorRequest> request);

  std::shared_ptr<DeviceMemory> memory;
  BufferSource &deviceBuffers;
  BufferSource &hostBuffers;
  std::unique_ptr<Communicator> host;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_STAGEDCOMMUNICATOR_H
