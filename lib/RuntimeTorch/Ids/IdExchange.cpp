//===- IdExchange.cpp - Numbers from each rank to each other --------------===//

#include "Ids/IdExchange.h"

#include "Group/WatchedGroup.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

#include <algorithm>
#include <numeric>

namespace neuroshard::runtime {
namespace {

constexpr auto kBytes = static_cast<int64_t>(sizeof(int64_t));

// The group carries nothing else. Of each kind a pair of ranks has one message
// under way, in an order that both know.
constexpr MessageKind kKinds[] = {MessageKind::Ids, MessageKind::Results};
constexpr MessageKind kRestKinds[] = {MessageKind::IdsSecondHop,
                                      MessageKind::ResultsSecondHop};
constexpr MessageKind kSplitKind = MessageKind::HeadersSecondHop;

std::vector<int64_t> bytesOf(std::span<const int64_t> counts) {
  std::vector<int64_t> bytes;
  for (int64_t count : counts)
    bytes.push_back(count * kBytes);
  return bytes;
}

/// What the next message has room for, after one of `count` values in `room`.
int64_t nextRoom(int64_t room, int64_t count) {
  return count > room || 2 * count < room ? count + count / 8 : room;
}

/// The values that have no room.
at::Tensor restOf(const IdMessage &message, int64_t room) {
  auto count = static_cast<int64_t>(message.values.size());
  at::Tensor rest = at::empty({std::max<int64_t>(0, count - room)}, at::kLong);
  if (count > room)
    std::copy(message.values.begin() + room, message.values.end(),
              rest.mutable_data_ptr<int64_t>());
  return rest.view(at::kByte);
}

} // namespace

Buffer IdExchange::KeptBuffer::take(int64_t bytes) {
  if (memory.use_count() == 1 && bytes <= size)
    return memory;
  constexpr std::align_val_t kAlignment{64};
  size = bytes + bytes / 4;
  memory = Buffer(static_cast<std::byte *>(
                      ::operator new(static_cast<size_t>(size), kAlignment)),
                  [](std::byte *data) { ::operator delete(data, kAlignment); });
  return memory;
}

IdExchange::IdExchange(const std::string &groupName) : name(groupName) {
  if (name.empty())
    return;
  auto group = c10d::resolve_process_group(name);
  size = group->getSize();
  watch = findWatch(name);
  messages.emplace(group, watch);
  mappedAhead.emplace(watch, "mapped ahead " + name, group->getRank());
  auto count = static_cast<size_t>(size);
  sendMemory.resize(count);
  rooms.fill({Counts(count), Counts(count)});
}

at::Tensor IdExchange::pack(const IdMessage &message, int64_t room,
                            KeptBuffer &memory) {
  auto head = static_cast<int64_t>(message.head.size());
  auto count = static_cast<int64_t>(message.values.size());
  int64_t bytes = (1 + head + room) * kBytes;
  Buffer buffer = memory.take(bytes);
  auto *to = as<int64_t>(buffer);
  *to++ = count;
  to = std::ranges::copy(message.head, to).out;
  to = std::copy_n(message.values.begin(), std::min(count, room), to);
  std::fill_n(to, std::max<int64_t>(0, room - count), 0);
  return wrapBytes(std::move(buffer), bytes, c10::kCPU);
}

template <typename Function>
void IdExchange::withCause(const Function &function) {
  try {
    function();
  } catch (const CommunicatorError &error) {
    C10_THROW_ERROR(DistBackendError, error.what());
  } catch (const std::exception &error) {
    watch->endAfterExchange(error.what(), name);
    C10_THROW_ERROR(DistBackendError, watch->causeOfEnd());
  }
}

void IdExchange::expect(Use use, int64_t head) {
  Counts numbers = rooms[use].received;
  for (int64_t &one : numbers)
    one += 1 + head;
  withCause([&] {
    messages->receiveInto(receiveMemory[use]);
    expected[use] = messages->expect(kKinds[use], bytesOf(numbers));
  });
}

void IdExchange::exchange(MessageKind kind, const std::vector<at::Tensor> &sent,
                          std::span<const int64_t> received, const Take &take) {
  std::unique_ptr<PeerRequest> request;
  withCause([&] {
    messages->receiveInto(restMemory);
    request = messages->expect(kind, bytesOf(received));
  });
  exchange(std::move(request), sent, take);
}

void IdExchange::exchange(std::unique_ptr<PeerRequest> request,
                          const std::vector<at::Tensor> &sent,
                          const Take &take) {
  watch->countExchange();
  withCause([&] {
    request->send(sent);
    size_t rank = 0;
    for (std::span<const std::byte> piece : request->wait())
      take(rank++, {reinterpret_cast<const int64_t *>(piece.data()),
                    piece.size() / sizeof(int64_t)});
  });
}

at::Tensor IdExchange::split(const at::Tensor &values,
                             std::span<const int64_t> sent,
                             std::span<const int64_t> received) {
  if (!messages)
    return values;
  at::Tensor result =
      at::empty({std::accumulate(received.begin(), received.end(), int64_t{0})},
                at::kLong);
  auto *to = result.mutable_data_ptr<int64_t>();
  exchange(kSplitKind,
           values.flatten().view(at::kByte).split_with_sizes(bytesOf(sent)),
           received, [&](size_t, std::span<const int64_t> piece) {
             to = std::ranges::copy(piece, to).out;
           });
  return result;
}

void IdExchange::swap(Use use, const std::vector<IdMessage> &sent,
                      std::vector<IdMessage> &received) {
  received.resize(sent.size());
  if (!messages) {
    received = sent;
    return;
  }
  const Rooms now = rooms[use];
  auto head = static_cast<int64_t>(sent.front().head.size());
  std::vector<at::Tensor> packed;
  Counts more;
  bool haveMore = false;
  for (size_t rank = 0; rank < sent.size(); ++rank) {
    auto count = static_cast<int64_t>(sent[rank].values.size());
    packed.push_back(pack(sent[rank], now.sent[rank], sendMemory[rank]));
    haveMore |= count > now.sent[rank];
    rooms[use].sent[rank] = nextRoom(now.sent[rank], count);
  }
  if (!expected[use])
    expect(use, head);
  exchange(std::move(expected[use]), packed,
           [&](size_t rank, std::span<const int64_t> piece) {
             int64_t room = now.received[rank], count = piece[0];
             piece = piece.subspan(1);
             received[rank].head.assign(piece.begin(), piece.begin() + head);
             received[rank].values.assign(piece.begin() + head,
                                          piece.begin() + head +
                                              std::min(room, count));
             rooms[use].received[rank] = nextRoom(room, count);
             more.push_back(std::max<int64_t>(0, count - room));
             haveMore |= more.back() > 0;
           });
  if (haveMore) {
    std::vector<at::Tensor> rests;
    for (size_t rank = 0; rank < sent.size(); ++rank)
      rests.push_back(restOf(sent[rank], now.sent[rank]));
    exchange(kRestKinds[use], rests, more,
             [&](size_t rank, std::span<const int64_t> piece) {
               received[rank].values.insert(received[rank].values.end(),
                                            piece.begin(), piece.end());
             });
  }
  expect(use, head);
}

} // namespace neuroshard::runtime
