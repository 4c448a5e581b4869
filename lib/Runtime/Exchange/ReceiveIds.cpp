//===- ReceiveIds.cpp - Lays out received ids for the kernels -------------===//
//
// Kernels read each stream as one jagged array (ids and offsets) over the bags
// of all peers. The payload of a single peer is read in place: only the offsets
// are made.
//
//===----------------------------------------------------------------------===//

#include "IdExchange.h"
#include "neuroshard/Artifact/IdPayload.h"

#include <cstring>

namespace neuroshard::runtime {

namespace {

class StreamBuilder {
public:
  StreamBuilder(Device &device, const StreamSet &set, int32_t idBytes,
                std::span<const std::byte *const> payloads,
                std::span<const int64_t> batches, BufferKind kind,
                ReceivedSet &received)
      : device(device), set(set), idBytes(idBytes), payloads(payloads),
        kind(kind), received(received) {
    received.firstBagOfPeer.push_back(0);
    for (int64_t batch : batches) {
      received.firstBagOfPeer.push_back(received.firstBagOfPeer.back() + batch);
      layouts.emplace_back(set, batch, idBytes);
    }
    received.streams.resize(set.streams.size());
    storage.resize(set.streams.size());
  }

  void build() {
    readCounts();
    for (size_t i = 0; i < set.streams.size(); ++i)
      allocate(i);
    int64_t peers = received.numPeers();
    device.threads.parallelFor(
        static_cast<int64_t>(set.streams.size()) * peers, [&](int64_t i) {
          fill(static_cast<size_t>(i / peers), static_cast<size_t>(i % peers));
        });
  }

private:
  void readCounts() {
    for (ReceivedStream &stream : received.streams)
      stream.firstIdOfPeer.push_back(0);
    for (size_t peer = 0; peer < payloads.size(); ++peer) {
      std::vector<int64_t> counts = layouts[peer].readCounts(payloads[peer]);
      layouts[peer].placeIds(counts);
      for (size_t i = 0; i < counts.size(); ++i) {
        std::vector<int64_t> &first = received.streams[i].firstIdOfPeer;
        first.push_back(first.back() + counts[i]);
      }
    }
  }

  /// Where the copy of a stream is written; null where the payload is read in
  /// place.
  struct Storage {
    std::byte *ids = nullptr;
    float *weights = nullptr;
    int64_t *offsets = nullptr;
  };

  template <typename T> T *acquire(int64_t count) {
    received.storage.push_back(device.buffers->acquireArray<T>(kind, count));
    return as<T>(received.storage.back());
  }

  void allocate(size_t index) {
    ReceivedStream &stream = received.streams[index];
    const StreamLayout &layout = set.streams[index];
    Storage &own = storage[index];
    if (layout.pooled)
      own.offsets = acquire<int64_t>(received.firstBagOfPeer.back() + 1);
    stream.offsets = own.offsets;
    if (payloads.size() == 1) {
      stream.ids = layouts[0].ids(payloads[0], index);
      if (layout.weighted)
        stream.weights = layouts[0].weights(payloads[0], index);
      return;
    }
    stream.ids = own.ids = acquire<std::byte>(stream.numIds() * idBytes);
    if (layout.weighted)
      stream.weights = own.weights = acquire<float>(stream.numIds());
  }

  void fill(size_t index, size_t peer) {
    const ReceivedStream &stream = received.streams[index];
    int64_t first = stream.firstIdOfPeer[peer];
    int64_t count = stream.firstIdOfPeer[peer + 1] - first;
    const Storage &own = storage[index];
    if (own.offsets)
      fillOffsets(index, peer);
    if (own.ids)
      std::memcpy(own.ids + first * idBytes,
                  layouts[peer].ids(payloads[peer], index),
                  static_cast<size_t>(count * idBytes));
    if (own.weights)
      std::memcpy(own.weights + first,
                  layouts[peer].weights(payloads[peer], index),
                  static_cast<size_t>(count) * sizeof(float));
  }

  void fillOffsets(size_t index, size_t peer) {
    const ReceivedStream &stream = received.streams[index];
    const int32_t *lengths = layouts[peer].lengths(payloads[peer], index);
    int64_t *offsets = storage[index].offsets + received.firstBagOfPeer[peer];
    int64_t next = stream.firstIdOfPeer[peer];
    int64_t bags = received.bagsOf(static_cast<int64_t>(peer));
    for (int64_t b = 0; b < bags; ++b) {
      offsets[b] = next;
      next += lengths[b];
    }
    if (static_cast<int64_t>(peer) + 1 == received.numPeers())
      offsets[bags] = next;
  }

  Device &device;
  const StreamSet &set;
  int32_t idBytes;
  std::span<const std::byte *const> payloads;
  BufferKind kind;
  ReceivedSet &received;
  std::vector<IdPayload> layouts; ///< per peer.
  std::vector<Storage> storage;
};

} // namespace

void layOutStreams(Device &device, const StreamSet &set, int32_t idBytes,
                   std::span<const std::byte *const> payloads,
                   std::span<const int64_t> batches, BufferKind kind,
                   ReceivedSet &received) {
  StreamBuilder(device, set, idBytes, payloads, batches, kind, received)
      .build();
}

void receiveIds(Device &device, Routed &routed) {
  if (routed.received)
    return;
  const ExchangeLayout &layout = device.layout(routed.exchange);
  int32_t idBytes = device.manifest().exchanges[routed.exchange].idBytes();
  std::vector<const std::byte *> payloads;
  if (routed.request) {
    PhaseTimer timer(device.figures, Phase::IdsExchange);
    for (const auto &payload : routed.request->wait())
      payloads.push_back(payload.data());
  } else { // a single device, or replicated tables only, which have no streams
    payloads.assign(routed.batchOfPeer.size(), routed.ownPayload.get());
  }
  PhaseTimer timer(device.figures, Phase::Lookup);
  if (device.numDevices() > 1) // else the Bucketer made the streams
    layOutStreams(device, layout.owners[device.rank()], idBytes, payloads,
                  routed.batchOfPeer, BufferKind::ReceivedIds, routed.owned);
  routed.request.reset();
  if (layout.hasReplicated) {
    const std::byte *payload = routed.localPayload.get();
    layOutStreams(device, layout.locals[device.rank()], idBytes, {&payload, 1},
                  {&routed.batch, 1}, BufferKind::ReceivedIds, routed.local);
  }
  routed.received = true;
}

} // namespace neuroshard::runtime
