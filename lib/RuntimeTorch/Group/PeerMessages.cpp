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

class MessageRequest : public PeerRequest {
public:
  /// parts[p] comes from rank p.
  MessageRequest(c10::intrusive_ptr<c10d::ProcessGroup> group,
                 std::shared_ptr<GroupWatch> watch,
                 std::shared_ptr<DroppedMessages> dropped, int64_t exchange,
                 MessageKind kind, std::vector<at::Tensor> parts)
      : group(std::move(group)), watch(std::move(watch)),
        dropped(std::move(dropped)), tag(static_cast<int>(kind)),
        parts(std::move(parts)), pending{exchange, {}, {}} {
    receive();
  }

  ~MessageRequest() override {
    if (!pending.messages.empty())
      dropped->keep(std::move(pending));
  }

  void send(const std::vector<at::Tensor> &sent) override {
    const int rank = group->getRank(), size = group->getSize();
    parts[rank] = sent[rank];
    for (const at::Tensor &part : parts)
      pieces.emplace_back(static_cast<const std::byte *>(part.const_data_ptr()),
                          static_cast<size_t>(part.numel()));
    for (int step = 1; step < size; ++step)
      if (int peer = (rank + step) % size; sent[peer].numel() > 0) {
        std::vector<at::Tensor> one = {sent[peer]};
        add(group->send(one, peer, tag), size + peer);
      }
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
  /// In each step, no two ranks send to the same one.
  void receive() {
    const int rank = group->getRank(), size = group->getSize();
    for (int step = 1; step < size; ++step)
      if (int peer = (rank + size - step) % size; parts[peer].numel() > 0) {
        std::vector<at::Tensor> one = {parts[peer]};
        add(group->recv(one, peer, tag), peer);
      }
  }

  void add(c10::intrusive_ptr<c10d::Work> message, int lane) {
    pending.messages.push_back(std::move(message));
    pending.lanes.push_back(2 * group->getSize() * tag + lane);
  }

  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::shared_ptr<GroupWatch> watch;
  std::shared_ptr<DroppedMessages> dropped;
  const int tag;
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
  std::unique_ptr<PeerRequest> request = expect(kind, receiveBytes);
  request->send(sent);
  return request;
}

std::unique_ptr<PeerRequest>
PeerMessages::expect(MessageKind kind, std::span<const int64_t> receiveBytes) {
  return std::make_unique<MessageRequest>(group, watch, dropped, exchanges++,
                                          kind, makeRooms(receiveBytes));
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
