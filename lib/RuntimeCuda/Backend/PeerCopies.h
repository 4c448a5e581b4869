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
#include "neuroshard/Runtime/DeviceCommunicator.h"

#include <memory>

namespace neuroshard::cuda {

class PeerCopies : public runtime::DeviceCommunicator {
public:
  /// `group` exchanges messages of the host. The backend and the buffers must
  /// outlive this object, and all devices must do so until the group has ended
  /// its steps.
  PeerCopies(const CudaBackend &backend, runtime::BufferSource &buffers,
             std::unique_ptr<runtime::Communicator> group)
      : DeviceCommunicator(std::move(group)), backend(backend),
        buffers(buffers) {}

private:
  std::unique_ptr<runtime::CommunicatorRequest>
  startOnDevice(runtime::MessageKind kind, runtime::SharedBytes send,
                std::span<const int64_t> sendBytes,
                std::span<const int64_t> receiveBytes) override;
  std::unique_ptr<runtime::CommunicatorRequest>
  gatherOnDevice(runtime::MessageKind kind, runtime::SharedBytes send,
                 int64_t sendBytes,
                 std::span<const int64_t> receiveBytes) override;
  std::unique_ptr<runtime::CommunicatorRequest>
  start(runtime::MessageKind kind, runtime::SharedBytes send,
        std::span<const int64_t> begins, std::span<const int64_t> sendBytes,
        std::span<const int64_t> receiveBytes);

  const CudaBackend &backend;
  runtime::BufferSource &buffers;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_PEERCOPIES_H
