//===- HierarchicalIds.cpp - Hierarchical all-to-all of ids ---------------===//

#include "HierarchicalIds.h"
#include "Wire.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/IdPayload.h"

namespace neuroshard::runtime {
namespace {

const StreamSet kNoStreams;

/// The second stage as one device sees it.
class SecondStage {
public:
  SecondStage(Device &device, Routed &routed)
      : device(device), routed(routed), layout(device.layout(routed.exchange)),
        groups(device.plan->groups), own(groups.placeOf(device.rank())),
        idBytes(device.packedIdBytes(routed.exchange)) {}

  /// `received`: the payloads of the first stage, by rank.
  void start(const std::vector<const std::byte *> &received) {
    std::vector<int64_t> sendBytes(received.size());
    Buffer message = handOut(received, sendBytes);
    std::vector<int64_t> receiveBytes(received.size());
    for (size_t rank = 0; rank < received.size(); ++rank)
      receiveBytes[relayOf(rank)] += payloadOf(rank).bytes();
    countSentBytes(device, Phase::IdsExchange, sendBytes);
    routed.relayRequest = device.communicator->startAllToAll(
        MessageKind::IdsSecondHop, MessageMemory::Device, std::move(message),
        sendBytes, receiveBytes);
  }

  std::vector<const std::byte *> finish() const {
    return payloadsIn(waitForAll(*routed.relayRequest));
  }

private:
  std::vector<int32_t> ranksServed() const {
    return groups.devicesWithIndex(own.index);
  }
  /// Of a rank's ids for this group.
  size_t relayOf(size_t rank) const {
    int32_t index = groups.placeOf(static_cast<int64_t>(rank)).index;
    return static_cast<size_t>(
        groups.group(own.group)[static_cast<size_t>(index)]);
  }
  /// What this device gets of a rank's ids.
  IdPayload payloadOf(size_t rank) const {
    return {layout.owners[static_cast<size_t>(device.rank())],
            static_cast<int64_t>(rank), routed.batchOfPeer[rank], idBytes,
            routed.ownedIdsOfPeer[rank]};
  }

  /// Writes the message for the owners of this group, in the order of their
  /// numbers, and to each the ids of each rank.
  Buffer handOut(const std::vector<const std::byte *> &received,
                 std::vector<int64_t> &sendBytes) const {
    std::vector<Share> shares;
    int64_t total = 0;
    for (size_t owner = 0; owner < sendBytes.size(); ++owner) {
      if (!groups.sameGroup(static_cast<int64_t>(owner), device.rank()))
        continue;
      for (int32_t rank : ranksServed()) {
        Share &share =
            shares.emplace_back(owner, static_cast<size_t>(rank), total);
        int64_t bytes = makePayload(share).bytes();
        sendBytes[owner] += bytes;
        total += bytes;
      }
    }
    Buffer message = device.buffers->acquire(BufferKind::RelayedIds, total);
    std::vector<RowMove> moves;
    for (const Share &share : shares)
      addCopies(share, received[share.rank], message.get() + share.begin,
                moves);
    device.backend->moveRows(moves);
    return message;
  }

  /// The ids of one rank for one owner, and where they begin in the message.
  struct Share {
    size_t owner;
    size_t rank;
    int64_t begin;
  };

  const StreamSet &groupSet() const {
    return layout.groupIds[static_cast<size_t>(own.group)];
  }

  std::vector<int64_t> idsOf(const Share &share,
                             const std::vector<size_t> &streams) const {
    std::vector<int64_t> ids;
    for (size_t stream : streams)
      ids.push_back(routed.groupIdsOfPeer[share.rank][stream]);
    return ids;
  }

  IdPayload makePayload(const Share &share) const {
    const StreamSet &set = layout.owners[share.owner];
    return {set, static_cast<int64_t>(share.rank),
            routed.batchOfPeer[share.rank], idBytes,
            idsOf(share, streamsInGroup(groupSet(), set))};
  }

  void addCopies(const Share &share, const std::byte *from, std::byte *to,
                 std::vector<RowMove> &moves) const {
    const StreamSet &set = layout.owners[share.owner];
    int64_t batch = routed.batchOfPeer[share.rank];
    std::vector<size_t> streams = streamsInGroup(groupSet(), set);
    std::vector<int64_t> ids = idsOf(share, streams);
    IdPayload source(groupSet(), static_cast<int64_t>(share.rank), batch,
                     idBytes, routed.groupIdsOfPeer[share.rank]);
    IdPayload target = makePayload(share);
    std::vector<Copy> copies;
    auto isSent = [&](size_t i) {
      return set.streams[i].readers.contains(static_cast<int64_t>(share.rank));
    };
    for (size_t i = 0; i < set.streams.size(); ++i)
      if (set.streams[i].pooled && isSent(i))
        add({source.lengths(streams[i]), target.lengths(i),
             batch * kLengthBytes},
            copies);
    for (size_t i = 0; i < set.streams.size(); ++i)
      if (isSent(i))
        add({source.ids(streams[i]), target.ids(i), ids[i] * idBytes}, copies);
    for (size_t i = 0; i < set.streams.size(); ++i)
      if (set.streams[i].weighted && isSent(i))
        add({source.weights(streams[i]), target.weights(i),
             ids[i] * kWeightBytes},
            copies);
    for (const Copy &copy : copies)
      moves.push_back(copyOf(from + copy.from, to + copy.to, copy.bytes));
  }

  struct Copy {
    int64_t from, to, bytes;
  };

  /// Streams that follow each other on both sides are copied together.
  static void add(const Copy &copy, std::vector<Copy> &copies) {
    if (copy.bytes == 0)
      return;
    if (!copies.empty() &&
        copies.back().from + copies.back().bytes == copy.from &&
        copies.back().to + copies.back().bytes == copy.to)
      copies.back().bytes += copy.bytes;
    else
      copies.push_back(copy);
  }

  /// Where the ids of each rank begin in the messages of the relays.
  std::vector<const std::byte *>
  payloadsIn(const std::vector<const std::byte *> &messages) const {
    std::vector<const std::byte *> payloads(messages.size());
    for (int32_t relay : groups.group(own.group)) {
      const std::byte *next = messages[static_cast<size_t>(relay)];
      int32_t index = groups.placeOf(relay).index;
      for (int32_t served : groups.devicesWithIndex(index)) {
        auto rank = static_cast<size_t>(served);
        payloads[rank] = next;
        next += payloadOf(rank).bytes();
      }
    }
    return payloads;
  }

  static constexpr int64_t kLengthBytes = sizeof(int32_t);
  static constexpr int64_t kWeightBytes = sizeof(float);

  Device &device;
  Routed &routed;
  const ExchangeLayout &layout;
  const DeviceGroups &groups;
  GroupPlace own;
  int32_t idBytes;
};

} // namespace

std::vector<const StreamSet *> setsByReceiver(const Device &device,
                                              const ExchangeLayout &layout) {
  std::vector<const StreamSet *> sets;
  const DeviceGroups &groups = device.plan->groups;
  GroupPlace own = groups.placeOf(device.rank());
  for (size_t receiver = 0; receiver < layout.owners.size(); ++receiver) {
    GroupPlace place = groups.placeOf(static_cast<int64_t>(receiver));
    if (layout.groupIds.empty())
      sets.push_back(&layout.owners[receiver]);
    else if (place.index == own.index)
      sets.push_back(&layout.groupIds[static_cast<size_t>(place.group)]);
    else
      sets.push_back(&kNoStreams);
  }
  return sets;
}

std::vector<int64_t> bytesOfFirstMessages(const Device &device,
                                          const Routed &routed) {
  const ExchangeLayout &layout = device.layout(routed.exchange);
  const DeviceGroups &groups = device.plan->groups;
  GroupPlace own = groups.placeOf(device.rank());
  bool byRelay = !layout.groupIds.empty();
  const StreamSet &set =
      byRelay ? layout.groupIds[static_cast<size_t>(own.group)]
              : layout.owners[static_cast<size_t>(device.rank())];
  const auto &idsOfPeer =
      byRelay ? routed.groupIdsOfPeer : routed.ownedIdsOfPeer;
  int32_t idBytes = device.packedIdBytes(routed.exchange);
  std::vector<int64_t> bytes;
  for (size_t rank = 0; rank < routed.batchOfPeer.size(); ++rank) {
    GroupPlace place = groups.placeOf(static_cast<int64_t>(rank));
    bool isSent = !byRelay || place.index == own.index;
    bytes.push_back(isSent ? IdPayload(set, static_cast<int64_t>(rank),
                                       routed.batchOfPeer[rank], idBytes,
                                       idsOfPeer[rank])
                                 .bytes()
                           : 0);
  }
  return bytes;
}

void startSecondStageOfIds(Device &device, Routed &routed) {
  SecondStage(device, routed).start(waitForAll(*routed.request));
}

std::vector<const std::byte *> waitForIds(Device &device, Routed &routed) {
  if (device.layout(routed.exchange).groupIds.empty())
    return waitForAll(*routed.request);
  if (!routed.relayRequest)
    fail("the ids of this step were not relayed: the group has ended");
  std::vector<const std::byte *> payloads =
      SecondStage(device, routed).finish();
  routed.request.reset();
  return payloads;
}

} // namespace neuroshard::runtime
