//===- ProcessGroupCommunicator.cpp - Ranks of torch.distributed ----------===//
//
// Exchanges of bytes as messages (Gloo), or as collectives on uint8 tensors. On
// CPUs the work of a collective keeps its tensors alive, so that a request may
// be dropped at any time. On GPUs a request makes the current stream wait for
// its collective, also when it is dropped: later work of that stream may use
// the memory again.
//
//===----------------------------------------------------------------------===//

#include "ProcessGroupCommunicator.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

#include <algorithm>
#include <numeric>

namespace neuroshard::runtime {
namespace {

int64_t sum(std::span<const int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

at::Tensor makeBytes(int64_t count, c10::Device place) {
  return at::empty({count}, at::TensorOptions(at::kByte).device(place));
}

/// Views of consecutive parts of `bytes`; rooms[p] bytes from one to the next.
std::vector<at::Tensor> split(const at::Tensor &bytes,
                              std::span<const int64_t> counts,
                              std::span<const int64_t> rooms) {
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (size_t peer = 0; peer < counts.size(); ++peer) {
    parts.push_back(bytes.narrow(0, begin, counts[peer]));
    begin += rooms[peer];
  }
  return parts;
}

std::vector<int64_t> beginsOf(std::span<const int64_t> rooms) {
  std::vector<int64_t> begins(rooms.size());
  std::exclusive_scan(rooms.begin(), rooms.end(), begins.begin(), int64_t{0});
  return begins;
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

  ~ProcessGroupRequest() override {
    try {
      if (work && isOnDevice())
        waitOnStream();
    } catch (const std::exception &) {
      // The next exchange says why.
    }
  }

  const std::vector<std::span<const std::byte>> &wait() override {
    if (work && isOnDevice())
      waitOnStream();
    else if (work)
      watch->wait(*work, user);
    work.reset();
    return pieces;
  }

private:
  bool isOnDevice() const { return !output.is_cpu(); }

  /// The host goes on.
  void waitOnStream() {
    c10::DeviceGuard guard(output.device());
    try {
      work->wait();
    } catch (const std::exception &error) {
      watch->endAfterExchange(error.what(), user);
      watch->throwIfEnded();
    }
  }

  std::shared_ptr<GroupWatch> watch;
  std::string user;
  c10::intrusive_ptr<c10d::Work> work; ///< null once it has completed.
  at::Tensor output;
  std::vector<std::span<const std::byte>> pieces;
};

// Of the group's interface, names that PyTorch 2.11 has as well as 2.14 are
// used here and below.
bool hasBackendFor(const c10d::ProcessGroup &group, c10::DeviceType type) {
  return std::ranges::any_of(
      group.getDeviceTypes(),
      [&](const c10::Device &device) { return device.type() == type; });
}

} // namespace

ProcessGroupCommunicator::ProcessGroupCommunicator(
    const std::string &groupName, std::shared_ptr<GroupWatch> groupWatch,
    c10::Device place, const std::string &secondStages)
    : group(c10d::resolve_process_group(groupName)),
      secondGroup(secondStages.empty()
                      ? group
                      : c10d::resolve_process_group(secondStages)),
      watch(std::move(groupWatch)), place(place),
      carriesPlace(!place.is_cpu() && hasBackendFor(*group, place.type())) {
  if (!hasBackendFor(*group, c10::DeviceType::CPU))
    throw std::runtime_error(
        "the process group \"" + groupName +
        "\" cannot exchange tensors on the CPU; use backend \"gloo\", or "
        "\"cpu:gloo,cuda:nccl\"");
  if (group->getBackend(c10::DeviceType::CPU)->getBackendName() == "gloo")
    messages.emplace(group, watch);
}

ProcessGroupCommunicator::~ProcessGroupCommunicator() {
  // Collectives that a lost rank left unfinished would hold up the group's end
  // until they time out; the process is about to end anyway.
  if (watch->hasEnded()) {
    group.release();
    secondGroup.release();
  } else {
    watch->markClosed(name());
  }
}

template <typename Function>
auto ProcessGroupCommunicator::start(const Function &exchange) {
  watch->throwIfEnded();
  watch->countExchange();
  try {
    return exchange();
  } catch (const std::exception &error) {
    watch->endAfterExchange(error.what(), name());
  }
  watch->throwIfEnded();
  throw CommunicatorError("an exchange could not start");
}

c10::Device ProcessGroupCommunicator::placeOf(MessageMemory memory) const {
  return memory == MessageMemory::Host ? c10::Device(c10::kCPU) : place;
}

/// As lists of tensors, so that received messages may have room between them.
std::unique_ptr<CommunicatorRequest>
ProcessGroupCommunicator::swapOnDevice(MessageKind kind, SharedBytes send,
                                       std::span<const int64_t> sendBytes,
                                       std::span<const int64_t> receiveBytes) {
  c10::DeviceGuard guard(place);
  std::vector<int64_t> rooms;
  for (int64_t bytes : receiveBytes)
    rooms.push_back(roomOfMessage(bytes));
  at::Tensor output = makeBytes(sum(rooms), place);
  std::vector<at::Tensor> inputs = split(
      wrapBytes(std::move(send), sum(sendBytes), place), sendBytes, sendBytes);
  std::vector<at::Tensor> outputs = split(output, receiveBytes, rooms);
  c10d::ProcessGroup &user = isSecondHop(kind) ? *secondGroup : *group;
  auto work = start([&] { return user.alltoall(outputs, inputs); });
  return std::make_unique<ProcessGroupRequest>(
      watch, name(), std::move(work), output, beginsOf(rooms), receiveBytes);
}

std::unique_ptr<CommunicatorRequest> ProcessGroupCommunicator::startAllToAll(
    MessageKind kind, MessageMemory memory, SharedBytes send,
    std::span<const int64_t> sendBytes, std::span<const int64_t> receiveBytes) {
  if (!placeOf(memory).is_cpu())
    return swapOnDevice(kind, std::move(send), sendBytes, receiveBytes);
  at::Tensor input = wrapBytes(std::move(send), sum(sendBytes), c10::kCPU);
  if (messages)
    return start([&] {
      return messages->exchange(kind, split(input, sendBytes, sendBytes),
                                receiveBytes);
    });
  at::Tensor output = makeBytes(sum(receiveBytes), c10::kCPU);
  std::vector<int64_t> sendSplits(sendBytes.begin(), sendBytes.end());
  std::vector<int64_t> receiveSplits(receiveBytes.begin(), receiveBytes.end());
  auto work = start([&] {
    return group->alltoall_base(output, input, receiveSplits, sendSplits);
  });
  return std::make_unique<ProcessGroupRequest>(watch, name(), std::move(work),
                                               output, beginsOf(receiveBytes),
                                               receiveBytes);
}

std::unique_ptr<CommunicatorRequest> ProcessGroupCommunicator::startAllGather(
    MessageKind kind, MessageMemory memory, SharedBytes send, int64_t sendBytes,
    std::span<const int64_t> receiveBytes) {
  c10::DeviceGuard guard(placeOf(memory));
  if (messages && placeOf(memory).is_cpu())
    return start([&] {
      at::Tensor everyones = wrapBytes(std::move(send), sendBytes, c10::kCPU);
      return messages->exchange(kind, std::vector(size(), everyones),
                                receiveBytes);
    });
  // Backends gather equal sizes only, so all are padded to the largest.
  int64_t padded = roomOfMessage(
      *std::max_element(receiveBytes.begin(), receiveBytes.end()));
  at::Tensor input = makeBytes(padded, placeOf(memory));
  input.narrow(0, 0, sendBytes)
      .copy_(wrapBytes(std::move(send), sendBytes, placeOf(memory)));
  input.narrow(0, sendBytes, padded - sendBytes).zero_();
  at::Tensor output = makeBytes(padded * size(), placeOf(memory));
  auto work = start([&] { return group->_allgather_base(output, input); });
  std::vector<int64_t> offsets;
  for (int64_t peer = 0; peer < size(); ++peer)
    offsets.push_back(peer * padded);
  return std::make_unique<ProcessGroupRequest>(watch, name(), std::move(work),
                                               output, offsets, receiveBytes);
}

} // namespace neuroshard::runtime
