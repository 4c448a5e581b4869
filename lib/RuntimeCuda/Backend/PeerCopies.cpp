//===- PeerCopies.cpp - Exchanges between GPUs of one process -------------===//
//
// The message of the host says where the message of the GPU lies. It owns that,
// until all receivers have let their streams copy it.
//
//===----------------------------------------------------------------------===//

#include "PeerCopies.h"
#include "neuroshard/Artifact/Error.h"

#include <cstring>
#include <utility>

namespace neuroshard::cuda {

using namespace runtime;

namespace {

/// What one rank sends to another.
struct Slice {
  const std::byte *first;
  int64_t bytes;
  CUcontext context;
  CUstream stream; ///< of the sender.
  CUevent ready;
};

/// A message and what its receivers need.
struct Sent {
  Sent(std::shared_ptr<const Gpu> gpu, SharedBytes message)
      : gpu(std::move(gpu)), message(std::move(message)), ready(*this->gpu) {}
  std::shared_ptr<const Gpu> gpu;
  SharedBytes message;
  Event ready;
  std::vector<Slice> slices;
};

class PeerCopy : public CommunicatorRequest {
public:
  PeerCopy(const CudaBackend &backend, BufferSource &buffers,
           std::unique_ptr<CommunicatorRequest> slices,
           std::span<const int64_t> receiveBytes)
      : backend(backend), buffers(buffers), slices(std::move(slices)),
        expected(receiveBytes.begin(), receiveBytes.end()) {}

  const std::vector<std::span<const std::byte>> &wait() override {
    if (slices)
      copyAll();
    return received;
  }

private:
  void copyAll() {
    const Gpu &gpu = *backend.ownGpu();
    ContextScope scope(gpu);
    int64_t total = 0;
    for (int64_t bytes : expected)
      total += roomOfMessage(bytes);
    memory = buffers.take(total);
    std::byte *to = memory.get();
    const auto &messages = slices->wait();
    Event copied(gpu);
    for (size_t peer = 0; peer < expected.size(); ++peer) {
      Slice slice;
      std::memcpy(&slice, messages[peer].data(), sizeof(slice));
      if (slice.bytes != expected[peer])
        fail("expected ", expected[peer], " bytes from rank ", peer,
             ", which sent ", slice.bytes);
      if (slice.bytes > 0)
        copy(gpu, slice, to, copied);
      received.emplace_back(to, static_cast<size_t>(slice.bytes));
      to += roomOfMessage(slice.bytes);
    }
    slices.reset(); // the senders may use their memory again
  }

  void copy(const Gpu &gpu, const Slice &slice, std::byte *to, Event &copied) {
    const CudaDriver &driver = gpu.driver;
    CUstream stream = backend.currentStream();
    driver.check(driver.streamWaitEvent(stream, slice.ready, 0),
                 "waiting for an event");
    if (!driver.memcpyPeerAsync)
      fail("'", driver.name, "' cannot copy between GPUs (cuMemcpyPeerAsync)");
    driver.check(driver.memcpyPeerAsync(
                     reinterpret_cast<CUdeviceptr>(to), gpu.context,
                     reinterpret_cast<CUdeviceptr>(slice.first), slice.context,
                     static_cast<size_t>(slice.bytes), stream),
                 "copying a message of another GPU");
    copied.record(stream);
    copied.holdBack(slice.stream);
  }

  const CudaBackend &backend;
  BufferSource &buffers;
  std::unique_ptr<CommunicatorRequest> slices; ///< null once copied.
  std::vector<int64_t> expected;
  Buffer memory;
  std::vector<std::span<const std::byte>> received;
};

} // namespace

std::unique_ptr<CommunicatorRequest> PeerCopies::start(
    MessageKind kind, SharedBytes send, std::span<const int64_t> begins,
    std::span<const int64_t> sendBytes, std::span<const int64_t> receiveBytes) {
  std::shared_ptr<const Gpu> gpu = backend.ownGpu();
  ContextScope scope(*gpu);
  const std::byte *first = send.get();
  auto sent = std::make_shared<Sent>(gpu, std::move(send));
  sent->ready.record(backend.currentStream());
  for (size_t peer = 0; peer < sendBytes.size(); ++peer)
    sent->slices.push_back({first + begins[peer], sendBytes[peer], gpu->context,
                            backend.currentStream(), sent->ready.get()});
  std::vector<int64_t> bytes(sendBytes.size(), sizeof(Slice));
  SharedBytes described(
      sent, reinterpret_cast<const std::byte *>(sent->slices.data()));
  return std::make_unique<PeerCopy>(
      backend, buffers,
      host->startAllToAll(kind, MessageMemory::Host, std::move(described),
                          bytes, bytes),
      receiveBytes);
}

std::unique_ptr<CommunicatorRequest>
PeerCopies::startOnDevice(MessageKind kind, SharedBytes send,
                          std::span<const int64_t> sendBytes,
                          std::span<const int64_t> receiveBytes) {
  std::vector<int64_t> begins = {0};
  for (int64_t bytes : sendBytes)
    begins.push_back(begins.back() + bytes);
  return start(kind, std::move(send), begins, sendBytes, receiveBytes);
}

std::unique_ptr<CommunicatorRequest>
PeerCopies::gatherOnDevice(MessageKind kind, SharedBytes send,
                           int64_t sendBytes,
                           std::span<const int64_t> receiveBytes) {
  std::vector<int64_t> begins(receiveBytes.size());
  std::vector<int64_t> bytes(receiveBytes.size(), sendBytes);
  return start(kind, std::move(send), begins, bytes, receiveBytes);
}

} // namespace neuroshard::cuda
