//===- PeerMessages.cpp - Exchanges as messages of pairs of ranks ---------===//
//
// A message keeps its tensor alive. Both sides know all sizes, so that empty
// messages need not travel, and messages of a pair arrive in order, so that all
// have the same tag. What a rank sends to itself stays where it is.
//
//===----------------------------------------------------------------------===//

#include "PeerMessages.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <numeric>
#include <utility>

namespace neuroshard::runtime {
namespace {

constexpr int kTag = 0;

class MessageRequest : public CommunicatorRequest {
public:
  /// parts[p] comes from rank p.
  MessageRequest(std::shared_ptr<GroupWatch> watch, std::string user,
                 std::shared_ptr<Messages> dropped,
                 std::vector<at::Tensor> parts)
      : watch(std::move(watch)), user(std::move(user)),
        dropped(std::move(dropped)), parts(std::move(parts)) {
    for (const at::Tensor &part : this->parts)
      pieces.emplace_back(static_cast<const std::byte *>(part.const_data_ptr()),
                          static_cast<size_t>(part.numel()));
  }

  ~MessageRequest() override {
    dropped->insert(dropped->end(), messages.begin(), messages.end());
  }

  void add(c10::intrusive_ptr<c10d::Work> message) {
    messages.push_back(std::move(message));
  }

  const std::vector<std::span<const std::byte>> &wait() override {
    if (!messages.empty())
      watch->wait(messages, user);
    messages.clear();
    return pieces;
  }

private:
  std::shared_ptr<GroupWatch> watch;
  std::string user;
  std::shared_ptr<Messages> dropped;
  std::vector<at::Tensor> parts;
  std::vector<std::span<const std::byte>> pieces; ///< the bytes of the parts.
  Messages messages; ///< empty once they have arrived.
};

} // namespace

at::Tensor wrapBytes(SharedBytes bytes, int64_t count, c10::Device place) {
  if (count == 0)
    return at::empty({0}, at::TensorOptions(at::kByte).device(place));
  void *data = const_cast<std::byte *>(bytes.get());
  return at::from_blob(
      data, {count}, [bytes = std::move(bytes)](void *) mutable { bytes = {}; },
      at::TensorOptions(at::kByte).device(place), place);
}

PeerMessages::PeerMessages(c10::intrusive_ptr<c10d::ProcessGroup> group,
                           std::shared_ptr<GroupWatch> watch)
    : group(std::move(group)), watch(std::move(watch)) {}

std::unique_ptr<CommunicatorRequest>
PeerMessages::exchange(const std::vector<at::Tensor> &sent,
                       std::span<const int64_t> receiveBytes) {
  finishDropped();
  const int rank = group->getRank(), size = group->getSize();
  std::vector<at::Tensor> received = makeRooms(receiveBytes);
  received[rank] = sent[rank];
  auto request = std::make_unique<MessageRequest>(watch, group->getGroupName(),
                                                  dropped, received);
  // In each step, no two ranks send to the same one.
  for (int step = 1; step < size; ++step)
    if (int peer = (rank + size - step) % size; receiveBytes[peer] > 0) {
      std::vector<at::Tensor> one = {received[peer]};
      request->add(group->recv(one, peer, kTag));
    }
  for (int step = 1; step < size; ++step)
    if (int peer = (rank + step) % size; sent[peer].numel() > 0) {
      std::vector<at::Tensor> one = {sent[peer]};
      request->add(group->send(one, peer, kTag));
    }
  return request;
}

std::vector<at::Tensor>
PeerMessages::makeRooms(std::span<const int64_t> receiveBytes) const {
  std::vector<int64_t> sizes(receiveBytes.begin(), receiveBytes.end());
  sizes[group->getRank()] = 0;
  auto total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  at::Tensor all = buffers ? wrapBytes(buffers->take(total), total, c10::kCPU)
                           : at::empty({total}, at::kByte);
  return all.split_with_sizes(sizes);
}

void PeerMessages::finishDropped() {
  if (dropped->empty())
    return;
  watch->wait(*dropped, group->getGroupName());
  dropped->clear();
}

} // namespace neuroshard::runtime
