//===- StagedCommunicator.cpp - Messages by way of the host ---------------===//

#include "StagedCommunicator.h"

#include <numeric>
#include <utility>

namespace neuroshard::runtime {
namespace {

class StagedRequest : public CommunicatorRequest {
public:
  StagedRequest(std::shared_ptr<DeviceMemory> memory, BufferSource &buffers,
                std::unique_ptr<CommunicatorRequest> request)
      : memory(std::move(memory)), buffers(buffers),
        request(std::move(request)) {}

  const std::vector<std::span<const std::byte>> &wait() override {
    if (request)
      copyAll(request->wait());
    request.reset();
    return received;
  }

private:
  void copyAll(const std::vector<std::span<const std::byte>> &messages) {
    int64_t total = 0;
    for (const auto &message : messages)
      total += roomOfMessage(static_cast<int64_t>(message.size()));
    copies = buffers.take(total);
    std::byte *to = copies.get();
    for (const auto &message : messages) {
      auto bytes = static_cast<int64_t>(message.size());
      memory->write(to, message.data(), bytes);
      received.emplace_back(to, message.size());
      to += roomOfMessage(bytes);
    }
  }

  std::shared_ptr<DeviceMemory> memory;
  BufferSource &buffers;
  std::unique_ptr<CommunicatorRequest> request; ///< null once copied.
  Buffer copies;
  std::vector<std::span<const std::byte>> received;
};

} // namespace

SharedBytes StagedCommunicator::copyToHost(const std::byte *message,
                                           int64_t bytes) {
  Buffer copy = hostBuffers.take(bytes);
  memory->read(copy.get(), message, bytes);
  return copy;
}

std::unique_ptr<CommunicatorRequest>
StagedCommunicator::receive(std::unique_ptr<CommunicatorRequest> request) {
  return std::make_unique<StagedRequest>(memory, deviceBuffers,
                                         std::move(request));
}

std::unique_ptr<CommunicatorRequest>
StagedCommunicator::startOnDevice(MessageKind kind, SharedBytes send,
                                  std::span<const int64_t> sendBytes,
                                  std::span<const int64_t> receiveBytes) {
  int64_t total =
      std::accumulate(sendBytes.begin(), sendBytes.end(), int64_t{0});
  return receive(host->startAllToAll(kind, MessageMemory::Host,
                                     copyToHost(send.get(), total), sendBytes,
                                     receiveBytes));
}

std::unique_ptr<CommunicatorRequest>
StagedCommunicator::gatherOnDevice(MessageKind kind, SharedBytes send,
                                   int64_t sendBytes,
                                   std::span<const int64_t> receiveBytes) {
  return receive(host->startAllGather(kind, MessageMemory::Host,
                                      copyToHost(send.get(), sendBytes),
                                      sendBytes, receiveBytes));
}

} // namespace neuroshard::runtime
