//===- PeerCopies.h - Exchanges between GPUs of one process -----*- C++ -*-===//
//
// A communicator for devices that are threads of one process. Receivers copy
// what peers send on their own streams: events order these copies after the
// sender's work before, and the sender's work after them. No host waits for a
// GPU.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_PEERCOPIES_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_PEERCOPIES_H

#include "CudaBackend.h"
#include "neuroshard/Runtime/Communicator.h"

#include <memory>

namespace neuroshard::cuda {

class PeerCopies : public runtime::Communicator {
public:
  /// `group` exchanges messages of the host. The backend and the buffers must
  /// outlive this object, and all devices must do so until the group has ended
  /// its steps.
  PeerCopies(const CudaBackend &backend, runtime::BufferSource &buffers,
             std::unique_ptr<runtime::Communicator> group)
      : backend(backend), buffers(buffers), group(std::move(group)) {}

  int rank() const override { return group->rank(); }
  int size() const override { return group->size(); }
  bool carriesDeviceMemory() const override { return true; }

  std::unique_ptr<runtime::CommunicatorRequest>
  startAllToAll(runtime::MessageMemory memory, runtime::SharedBytes send,
                std::span<const int64_t> sendBytes,
                std::span<const int64_t> receiveBytes) override;
  std::unique_ptr<runtime::CommunicatorRequest>
  startAllGather(runtime::MessageMemory memory, runtime::SharedBytes send,
                 int64_t sendBytes,
                 std::span<const int64_t> receiveBytes) override;

  void abort(const std::string &cause) noexcept override {
    group->abort(cause);
  }
  bool ended() const override { return group->ended(); }
  void enterStep() override { group->enterStep(); }
  void leaveStep() noexcept override { group->leaveStep(); }

private:
  std::unique_ptr<runtime::CommunicatorRequest>
  start(runtime::SharedBytes send, std::span<const int64_t> begins,
        std::span<const int64_t> sendBytes,
        std::span<const int64_t> receiveBytes);

  const CudaBackend &backend;
  runtime::BufferSource &buffers;
  std::unique_ptr<runtime::Communicator> group;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_PEERCOPIES_H
