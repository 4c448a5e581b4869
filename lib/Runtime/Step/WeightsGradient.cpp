//===- WeightsGradient.cpp - Gradients of per-sample weights --------------===//
//
// Owners compute one value per id and send it back. The rank of the sample adds
// up the values of column shards and of lookups on the same feature.
//
//===----------------------------------------------------------------------===//

#include "Exchange/GradientExchange.h"
#include "Exchange/RowViews.h"
#include "Exchange/Wire.h"
#include "Steps.h"
#include "UpdateInputs.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

constexpr int64_t kGradientIdsPerChunk = 1 << 12;

class WeightsGradient {
public:
  WeightsGradient(Device &device, Routed &routed, Partials &gradients,
                  float *out)
      : device(device), routed(routed), gradients(gradients), out(out),
        layout(device.layout(routed.exchange)),
        spec(device.manifest().exchanges[routed.exchange]) {}

  void run() {
    std::fill_n(out, routed.numIds, 0.0f);
    std::vector<const float *> fromOwners = exchangeRemote();
    Buffer local = computeLocal();
    for (size_t k = 0; k < spec.lookups.size(); ++k)
      if (spec.lookups[k].weighted)
        addLookup(k, fromOwners, as<float>(local));
    undoScale();
  }

private:
  bool needsExchange() const {
    for (size_t k = 0; k < spec.lookups.size(); ++k)
      if (spec.lookups[k].weighted && !layout.results[k].replicated)
        return true;
    return false;
  }

  bool isWeighted(const EntryLayout &entry) const {
    return spec.lookups[entry.lookup].weighted;
  }

  /// Number of values for each peer.
  std::vector<int64_t> valuesOfPeer(const StreamSet &set,
                                    const ReceivedSet &received) const {
    std::vector<int64_t> values(static_cast<size_t>(received.numPeers()));
    for (const EntryLayout &entry : set.entries)
      if (isWeighted(entry))
        for (size_t peer = 0; peer < values.size(); ++peer)
          values[peer] += idsOf(received, entry, peer).size();
    return values;
  }

  static Range idsOf(const ReceivedSet &received, const EntryLayout &entry,
                     size_t peer) {
    const std::vector<int64_t> &first =
        received.streams[static_cast<size_t>(entry.stream)].firstIdOfPeer;
    return {first[peer], first[peer + 1]};
  }

  /// Values of all weighted entries, peer after peer, entry after entry.
  Buffer compute(const StreamSet &set, const ReceivedSet &received,
                 std::span<const Block> blocks, const float *rows) {
    std::vector<int64_t> values = valuesOfPeer(set, received);
    int64_t total = 0;
    std::vector<int64_t> next; // place of the next value for each peer
    for (int64_t count : values) {
      next.push_back(total);
      total += count;
    }
    Buffer result =
        device.buffers->acquireArray<float>(BufferKind::SampleWeights, total);
    for (size_t e = 0; e < set.entries.size(); ++e)
      if (isWeighted(set.entries[e]))
        computeEntry(set, e, received, blocks, rows, as<float>(result), next);
    return result;
  }

  void computeEntry(const StreamSet &set, size_t index,
                    const ReceivedSet &received, std::span<const Block> blocks,
                    const float *rows, float *values,
                    std::vector<int64_t> &next) {
    const EntryLayout &entry = set.entries[index];
    const ReceivedStream &stream =
        received.streams[static_cast<size_t>(entry.stream)];
    nsrt_weight_gradient_kernel kernel =
        device.program.lookups[entry.kernel].weight_gradient;
    if (!kernel)
      fail(spec.where,
           "the program has no kernel for the gradient of the weights");
    GradientSource source{.set = &received,
                          .stream = &stream,
                          .exchange = 0,
                          .idBytes = spec.idBytes(),
                          .pooled = entry.pooled,
                          .padding = std::nullopt,
                          .beginOfPeer = {},
                          .stride = blocks[0].stride[index],
                          .firstNumber = 0};
    for (const Block &block : blocks)
      source.beginOfPeer.push_back(block.begin[index]);
    Buffer offsets = device.buffers->acquireArray<int64_t>(
        BufferKind::SampleWeights, stream.numIds());
    fillGradientOffsets(source, as<int64_t>(offsets));
    const std::byte *weights =
        device.slots[static_cast<size_t>(entry.slot)].weights();
    for (size_t peer = 0; peer < next.size(); ++peer) {
      Range ids = idsOf(received, entry, peer);
      float *to = values + next[peer];
      next[peer] += ids.size();
      int64_t chunks =
          (ids.size() + kGradientIdsPerChunk - 1) / kGradientIdsPerChunk;
      device.threads.parallelFor(chunks, [&](int64_t i) {
        kernel(weights, stream.ids + ids.begin * spec.idBytes(),
               as<int64_t>(offsets) + ids.begin, rows, to,
               i * kGradientIdsPerChunk,
               std::min((i + 1) * kGradientIdsPerChunk, ids.size()));
      });
    }
  }

  /// Returns the values of each owner's entries for the local batch.
  std::vector<const float *> exchangeRemote() {
    std::vector<const float *> result;
    if (!needsExchange())
      return result;
    receiveGradients(device, routed, gradients);
    PhaseTimer timer(device.figures, Phase::WeightsGradient);
    const StreamSet &owned = layout.owners[device.rank()];
    kept = compute(owned, routed.owned, gradients.receivedBlocks,
                   gradients.gradients);
    if (device.numDevices() == 1)
      return {as<float>(kept)};
    std::vector<int64_t> sendBytes = valuesOfPeer(owned, routed.owned);
    std::vector<int64_t> receiveBytes(layout.owners.size());
    for (size_t peer = 0; peer < layout.owners.size(); ++peer) {
      sendBytes[peer] *= static_cast<int64_t>(sizeof(float));
      for (const EntryLayout &entry : layout.owners[peer].entries)
        if (isWeighted(entry))
          receiveBytes[peer] += valuesOf(layout.owners[peer], entry) *
                                static_cast<int64_t>(sizeof(float));
    }
    countSentBytes(device, Phase::WeightsGradient, sendBytes);
    request = device.communicator->startAllToAll(kept, sendBytes, receiveBytes);
    for (const auto &message : request->wait())
      result.push_back(reinterpret_cast<const float *>(message.data()));
    return result;
  }

  Buffer computeLocal() {
    PhaseTimer timer(device.figures, Phase::WeightsGradient);
    if (!layout.hasReplicated)
      return nullptr;
    return compute(layout.locals[device.rank()], routed.local,
                   {&gradients.localBlock, 1}, gradients.localRows);
  }

  /// Ids of the local batch that an owner's entry has.
  int64_t valuesOf(const StreamSet &set, const EntryLayout &entry) const {
    return routed.buckets[set.streams[static_cast<size_t>(entry.stream)].bucket]
        .numIds;
  }

  /// Index of an entry's first value among the values of its set.
  int64_t firstValue(const StreamSet &set, size_t entry) const {
    int64_t first = 0;
    for (size_t e = 0; e < entry; ++e)
      if (isWeighted(set.entries[e]))
        first += valuesOf(set, set.entries[e]);
    return first;
  }

  void addLookup(size_t lookup, const std::vector<const float *> &fromOwners,
                 const float *local) {
    PhaseTimer timer(device.figures, Phase::WeightsGradient);
    const ResultLayout &result = layout.results[lookup];
    if (result.replicated) {
      const StreamSet &set = layout.locals[device.rank()];
      addValues(lookup, layout.bucketsOfLookup[lookup][0],
                local +
                    firstValue(set, static_cast<size_t>(result.localEntry)));
    }
    for (const PartialColumns &part : result.parts)
      addValues(lookup, part.bucket,
                fromOwners[static_cast<size_t>(part.device)] +
                    firstValue(layout.owners[part.device],
                               static_cast<size_t>(part.entry)));
  }

  void addValues(size_t lookup, int32_t bucket, const float *values) {
    const BucketState &state = routed.buckets[bucket];
    const auto *positions = as<const int64_t>(state.positions);
    int64_t firstId = routed.lookups[lookup].firstId;
    forRowRanges(device.threads, state.numIds, 1,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t j = begin; j < end; ++j)
                     out[positions ? positions[j] : firstId + j] += values[j];
                 });
  }

  /// The gradient scale averages tables over ranks; sample weights belong to
  /// one rank.
  void undoScale() {
    if (device.gradientScale == 1)
      return;
    for (int64_t i = 0; i < routed.numIds; ++i)
      out[i] /= device.gradientScale;
  }

  Device &device;
  Routed &routed;
  Partials &gradients;
  float *out;
  const ExchangeLayout &layout;
  const ExchangeSpec &spec;
  Buffer kept; ///< this owner's values, alive until they are read.
  std::unique_ptr<CommunicatorRequest> request;
};

} // namespace

void computeWeightsGradient(Device &device, Routed &routed, Partials &gradients,
                            float *out) {
  WeightsGradient(device, routed, gradients, out).run();
}

} // namespace neuroshard::runtime
