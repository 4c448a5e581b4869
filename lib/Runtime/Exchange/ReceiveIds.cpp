//===- ReceiveIds.cpp - Received ids as kernels read them -----------------===//
//
// Kernels read ids and weights in the messages. Messages have the lengths of
// bags; kernels need their offsets.
//
//===----------------------------------------------------------------------===//

#include "HierarchicalIds.h"
#include "IdExchange.h"
#include "RelayDuties.h"
#include "neuroshard/Artifact/IdPayload.h"

namespace neuroshard::runtime {

ReceivedSet readPayloads(Device &device, const StreamSet &set, int32_t idBytes,
                         int64_t firstRank,
                         std::span<const std::byte *const> payloads,
                         std::span<const int64_t> batches,
                         std::span<const std::vector<int64_t>> idsOfPeer,
                         BufferKind kind) {
  auto isRead = [&](const StreamLayout &stream, size_t peer) {
    return stream.readers.contains(firstRank + static_cast<int64_t>(peer));
  };
  int64_t numOffsets = 0;
  for (const StreamLayout &stream : set.streams)
    for (size_t peer = 0; peer < batches.size(); ++peer)
      numOffsets +=
          stream.pooled && isRead(stream, peer) ? batches[peer] + 1 : 0;
  ReceivedSet received;
  received.streams.resize(set.streams.size());
  received.offsets = device.buffers->acquire(
      kind, numOffsets * static_cast<int64_t>(sizeof(int64_t)));
  auto *next = as<int64_t>(received.offsets);
  std::vector<BagLengths> bags;
  for (size_t peer = 0; peer < payloads.size(); ++peer) {
    const std::byte *payload = payloads[peer];
    IdPayload layout(set, firstRank + static_cast<int64_t>(peer), batches[peer],
                     idBytes, idsOfPeer[peer]);
    for (size_t i = 0; i < set.streams.size(); ++i) {
      PeerIds ids;
      if (!isRead(set.streams[i], peer)) {
        received.streams[i].push_back(ids);
        continue;
      }
      ids.ids = payload + layout.ids(i);
      ids.numIds = idsOfPeer[peer][i];
      ids.bags = batches[peer];
      if (set.streams[i].weighted)
        ids.weights =
            reinterpret_cast<const float *>(payload + layout.weights(i));
      if (set.streams[i].pooled) {
        bags.push_back(
            {reinterpret_cast<const int32_t *>(payload + layout.lengths(i)),
             next, ids.bags});
        ids.offsets = next;
        next += ids.bags + 1;
      }
      received.streams[i].push_back(ids);
    }
  }
  device.backend->addUp(bags);
  return received;
}

void receiveIds(Device &device, Routed &routed) {
  if (routed.received)
    return;
  const ExchangeLayout &layout = device.layout(routed.exchange);
  const StreamSet &owned = layout.owners[device.rank()];
  int32_t idBytes = device.packedIdBytes(routed.exchange);
  // On a single device, the packer has made what kernels read.
  if (routed.request) {
    std::vector<const std::byte *> payloads;
    // In the order of all ranks: earlier results before these ids.
    relayResults(device);
    relayIds(device, &routed);
    {
      PhaseTimer timer(device.figures, Phase::IdsExchange);
      payloads = waitForIds(device, routed);
    }
    PhaseTimer timer(device.figures, Phase::Lookup);
    routed.owned =
        readPayloads(device, owned, idBytes, 0, payloads, routed.batchOfPeer,
                     routed.ownedIdsOfPeer, BufferKind::ReceivedIds);
  } else if (device.numDevices() > 1) { // replicated tables only
    routed.owned.streams.resize(owned.streams.size());
  }
  if (layout.hasReplicated) {
    PhaseTimer timer(device.figures, Phase::Lookup);
    const std::byte *payload = routed.localPayload.get();
    routed.local = readPayloads(
        device, layout.locals[device.rank()], idBytes, device.rank(),
        {&payload, 1}, {&routed.batch, 1},
        {&routed.localIdsOfPeer[static_cast<size_t>(device.rank())], 1},
        BufferKind::ReceivedIds);
  }
  routed.received = true;
}

} // namespace neuroshard::runtime
