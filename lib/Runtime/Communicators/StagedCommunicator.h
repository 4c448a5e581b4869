//===- StagedCommunicator.h - Messages by way of the host -------*- C++ -*-===//
//
// A communicator for devices with their own memory over one that carries
// messages of the host alone: what a device sends is copied to the host first,
// and what it receives from there.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_COMMUNICATORS_STAGEDCOMMUNICATOR_H
#define NEUROSHARD_LIB_RUNTIME_COMMUNICATORS_STAGEDCOMMUNICATOR_H

#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/Buffer.h"
#include "neuroshard/Runtime/DeviceCommunicator.h"

#include <memory>

namespace neuroshard::runtime {

class StagedCommunicator : public DeviceCommunicator {
public:
  /// The buffers are in memory of the device and of the host, and outlive this
  /// object.
  StagedCommunicator(std::shared_ptr<DeviceMemory> memory,
                     BufferSource &deviceBuffers, BufferSource &hostBuffers,
                     std::unique_ptr<Communicator> host)
      : DeviceCommunicator(std::move(host)), memory(std::move(memory)),
        deviceBuffers(deviceBuffers), hostBuffers(hostBuffers) {}

private:
  std::unique_ptr<CommunicatorRequest>
  startOnDevice(MessageKind kind, SharedBytes send,
                std::span<const int64_t> sendBytes,
                std::span<const int64_t> receiveBytes) override;
  std::unique_ptr<CommunicatorRequest>
  gatherOnDevice(MessageKind kind, SharedBytes send, int64_t sendBytes,
                 std::span<const int64_t> receiveBytes) override;

  SharedBytes copyToHost(const std::byte *message, int64_t bytes);
  std::unique_ptr<CommunicatorRequest>
  receive(std::unique_ptr<CommunicatorRequest> request);

  std::shared_ptr<DeviceMemory> memory;
  BufferSource &deviceBuffers;
  BufferSource &hostBuffers;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_COMMUNICATORS_STAGEDCOMMUNICATOR_H
