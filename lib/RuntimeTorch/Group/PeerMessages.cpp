//===- PeerMessages.cpp - Exchanges as messages of pairs of ranks ---------===//
//
// A message keeps its tensor alive. Both sides know all sizes, so that empty
// messages need not travel. Messages of a pair arrive in order if they have one
// tag: each kind has its own. What a rank sends to itself stays where it is.
//
//===----------------------------------------------------------------------===//

#include "PeerMessages.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>
#include <utility>

namespace neuroshard::runtime {

/// Keeps messages whose request was destroyed before they arrived. They need
/// their memory until later ones of the same lanes have arrived. Requests may
/// be destroyed by any thread.
class DroppedMessages {
public:
  struct Exchange {
    int64_t number;
    Messages messages;
    /// Of each message: a peer, a direction and a kind.
    std::vector<size_t> lanes;
  };

  explicit DroppedMessages(size_t lanes) : arrived(lanes, -1) {}

  void keep(Exchange exchange) {
    std::lock_guard lock(mutex);
    kept.push_back(std::move(exchange));
  }

  void noteArrival(const Exchange &done) {
    std::lock_guard lock(mutex);
    for (size_t lane : done.lanes)
      arrived[lane] = std::max(arrived[lane], done.number);
    std::erase_if(kept, [&](const Exchange &one) {
      return std::ranges::all_of(
          one.lanes, [&](size_t lane) { return arrived[lane] >= one.number; });
    });
  }

private:
  std::mutex mutex;
  std::vector<int64_t> arrived; ///< the last exchange, by lane.
  std::vector<Exchange> kept;
};

namespace {

/// A message's own default is the timeout with which its group was made, even
/// if the group got another one since.
std::chrono::milliseconds timeoutOf(c10d::ProcessGroup &group) {
  return group.getBackend(c10::DeviceType::CPU)->getBackendOptions()->timeout;
}

class MessageRequest : public CommunicatorRequest {
public:
  /// parts[p] comes from rank p.
  MessageRequest(c10::intrusive_ptr<c10d::ProcessGroup> group,
                 std::shared_ptr<GroupWatch> watch,
                 std::shared_ptr<DroppedMessages> dropped, int64_t exchange,
                 std::vector<at::Tensor> parts)
      : group(std::move(group)), watch(std::move(watch)),
        dropped(std::move(dropped)), parts(std::move(parts)),
        pending{exchange, {}, {}} {
    for (const at::Tensor &part : this->parts)
      pieces.emplace_back(static_cast<const std::byte *>(part.const_data_ptr()),
                          static_cast<size_t>(part.numel()));
  }

  ~MessageRequest() override {
    if (!pending.messages.empty())
      dropped->keep(std::move(pending));
  }

  void add(c10::intrusive_ptr<c10d::Work> message, size_t lane) {
    pending.messages.push_back(std::move(message));
    pending.lanes.push_back(lane);
  }

  const std::vector<std::span<const std::byte>> &wait() override {
    if (pending.messages.empty())
      return pieces;
    watch->wait(pending.messages, timeoutOf(*group), group->getGroupName());
    dropped->noteArrival(pending);
    pending.messages.clear();
    return pieces;
  }

private:
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::shared_ptr<GroupWatch> watch;
  std::shared_ptr<DroppedMessages> dropped;
  std::vector<at::Tensor> parts;
  std::vector<std::span<const std::byte>> pieces; ///< the bytes of the parts.
  /// Without messages once they have arrived.
  DroppedMessages::Exchange pending;
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
    : group(std::move(group)), watch(std::move(watch)),
      dropped(std::make_shared<DroppedMessages>(2 * this->group->getSize() *
                                                kNumMessageKinds)) {}

std::unique_ptr<CommunicatorRequest>
PeerMessages::exchange(MessageKind kind, const std::vector<at::Tensor> &sent,
                       std::span<const int64_t> receiveBytes) {
  const int rank = group->getRank(), size = group->getSize();
  const int tag = static_cast<int>(kind), firstLane = 2 * size * tag;
  std::vector<at::Tensor> received = makeRooms(receiveBytes);
  received[rank] = sent[rank];
  auto request = std::make_unique<MessageRequest>(group, watch, dropped,
                                                  exchanges++, received);
  // In each step, no two ranks send to the same one.
  for (int step = 1; step < size; ++step)
    if (int peer = (rank + size - step) % size; receiveBytes[peer] > 0) {
      std::vector<at::Tensor> one = {received[peer]};
      request->add(group->recv(one, peer, tag), firstLane + peer);
    }
  for (int step = 1; step < size; ++step)
    if (int peer = (rank + step) % size; sent[peer].numel() > 0) {
      std::vector<at::Tensor> one = {sent[peer]};
      request->add(group->send(one, peer, tag), firstLane + size + peer);
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

} // namespace neuroshard::runtime
