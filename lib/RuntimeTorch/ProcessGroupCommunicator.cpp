//===- ProcessGroupCommunicator.cpp - Ranks of torch.distributed ----------===//
//
// Exchanges of bytes as collectives on uint8 tensors. The work of a collective
// keeps its tensors alive, so that a request may be dropped at any time.
//
//===----------------------------------------------------------------------===//

#include "ProcessGroupCommunicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace neuroshard::runtime {
namespace {

int64_t sum(std::span<const int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

at::Tensor makeBytes(int64_t count) { return at::empty({count}, at::kByte); }

/// A tensor on `bytes` that shares their ownership.
at::Tensor wrap(SharedBytes bytes, int64_t count) {
  if (count == 0)
    return makeBytes(0);
  void *data = const_cast<std::byte *>(bytes.get());
  return at::from_blob(
      data, {count}, [bytes = std::move(bytes)](void *) mutable { bytes = {}; },
      at::kByte);
}

class ProcessGroupRequest : public CommunicatorRequest {
public:
  /// Rank p's bytes begin at offsets[p] of `output`.
  ProcessGroupRequest(std::shared_ptr<GroupWatch> watch, std::string user,
                      c10::intrusive_ptr<c10d::Work> work, at::Tensor output,
                      const std::vector<int64_t> &offsets,
                      std::span<const int64_t> counts)
      : watch(std::move(watch)), user(std::move(user)), work(std::move(work)),
        output(std::move(output)) {
    const auto *data =
        static_cast<const std::byte *>(this->output.const_data_ptr());
    for (size_t peer = 0; peer < counts.size(); ++peer)
      pieces.emplace_back(data + offsets[peer],
                          static_cast<size_t>(counts[peer]));
  }

  const std::vector<std::span<const std::byte>> &wait() override {
    if (work) {
      watch->wait(*work, user);
      work.reset();
    }
    return pieces;
  }

private:
  std::shared_ptr<GroupWatch> watch;
  std::string user;
  c10::intrusive_ptr<c10d::Work> work; ///< null once it has completed.
  at::Tensor output;
  std::vector<std::span<const std::byte>> pieces;
};

} // namespace

ProcessGroupCommunicator::ProcessGroupCommunicator(
    const std::string &groupName, std::shared_ptr<GroupWatch> groupWatch)
    : group(c10d::resolve_process_group(groupName)),
      watch(std::move(groupWatch)) {
  if (!group->hasBackendForDeviceType(c10::DeviceType::CPU))
    throw std::runtime_error(
        "the process group \"" + groupName +
        "\" cannot exchange tensors on the CPU; use backend \"gloo\", or "
        "\"cpu:gloo,cuda:nccl\"");
}

ProcessGroupCommunicator::~ProcessGroupCommunicator() {
  // Collectives that a lost rank left unfinished would hold up the group's end
  // until they time out; the process is about to end anyway.
  if (watch->hasEnded())
    group.release();
  else
    watch->markClosed(name());
}

template <typename Function>
c10::intrusive_ptr<c10d::Work>
ProcessGroupCommunicator::start(const Function &collective) {
  watch->throwIfEnded();
  watch->countExchange();
  try {
    return collective();
  } catch (const std::exception &error) {
    watch->endAfterExchange(error.what(), name());
  }
  watch->throwIfEnded();
  throw CommunicatorError("an exchange could not start");
}

std::unique_ptr<CommunicatorRequest>
ProcessGroupCommunicator::startAllToAll(MessageMemory, SharedBytes send,
                                        std::span<const int64_t> sendBytes,
                                        std::span<const int64_t> receiveBytes) {
  at::Tensor input = wrap(std::move(send), sum(sendBytes));
  at::Tensor output = makeBytes(sum(receiveBytes));
  std::vector<int64_t> sendSplits(sendBytes.begin(), sendBytes.end());
  std::vector<int64_t> receiveSplits(receiveBytes.begin(), receiveBytes.end());
  auto work = start([&] {
    return group->all_to_all_single(output, input, receiveSplits, sendSplits);
  });
  std::vector<int64_t> offsets(receiveBytes.size());
  std::exclusive_scan(receiveBytes.begin(), receiveBytes.end(), offsets.begin(),
                      int64_t{0});
  return std::make_unique<ProcessGroupRequest>(watch, name(), std::move(work),
                                               output, offsets, receiveBytes);
}

std::unique_ptr<CommunicatorRequest> ProcessGroupCommunicator::startAllGather(
    MessageMemory, SharedBytes send, int64_t sendBytes,
    std::span<const int64_t> receiveBytes) {
  // Backends gather equal sizes only, so all are padded to the largest; a
  // multiple of 16, which keeps every piece aligned.
  int64_t largest = *std::max_element(receiveBytes.begin(), receiveBytes.end());
  int64_t padded = (largest + 15) / 16 * 16;
  at::Tensor input = makeBytes(padded);
  if (sendBytes > 0)
    std::memcpy(input.mutable_data_ptr(), send.get(),
                static_cast<size_t>(sendBytes));
  if (sendBytes < padded)
    std::memset(static_cast<std::byte *>(input.mutable_data_ptr()) + sendBytes,
                0, static_cast<size_t>(padded - sendBytes));
  at::Tensor output = makeBytes(padded * size());
  auto work = start([&] { return group->all_gather_single(output, input); });
  std::vector<int64_t> offsets;
  for (int64_t peer = 0; peer < size(); ++peer)
    offsets.push_back(peer * padded);
  return std::make_unique<ProcessGroupRequest>(watch, name(), std::move(work),
                                               output, offsets, receiveBytes);
}

} // namespace neuroshard::runtime
