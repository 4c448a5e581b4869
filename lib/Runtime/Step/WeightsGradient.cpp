//===- WeightsGradient.cpp - Gradients of per-sample weights --------------===//
//
// Owners compute one value per id and send it back. The rank of the sample adds
// up the values of column shards and of lookups on the same feature. Values of
// replicated tables are computed from the rank's own gradients, as the update
// reads them.
//
//===----------------------------------------------------------------------===//

#include "Exchange/Blocks.h"
#include "Exchange/GradientExchange.h"
#include "Exchange/Wire.h"
#include "GradientParts.h"
#include "Steps.h"

namespace neuroshard::runtime {
namespace {

constexpr int64_t kValueBytes = sizeof(float);

class WeightsGradient {
public:
  WeightsGradient(Device &device, Routed &routed, Partials &gradients,
                  float *out)
      : device(device), routed(routed), gradients(gradients), out(out),
        layout(device.layout(routed.exchange)),
        spec(device.manifest().exchanges[routed.exchange]) {}

  void run() {
    receiveGradients(device, routed, gradients);
    PhaseTimer timer(device.figures, Phase::WeightsGradient);
    std::vector<const float *> fromOwners = exchangeOwned();
    Buffer local = computeReplicated();
    std::vector<PlacedValues> values;
    for (size_t k = 0; k < spec.lookups.size(); ++k)
      if (spec.lookups[k].weighted)
        addLookup(k, fromOwners, as<const float>(local), values);
    // The gradient scale averages tables over ranks; sample weights belong to
    // one rank.
    device.backend->addAtPlaces(values, out, routed.numIds,
                                device.gradientScale);
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

  /// Ids of the local batch for which an owner's entry gives values.
  int64_t idsOf(const StreamSet &set, const EntryLayout &entry) const {
    if (!entry.readers.contains(device.rank()))
      return 0;
    return routed.buckets[set.streams[static_cast<size_t>(entry.stream)].bucket]
        .numIds;
  }

  /// Adds up the ids of the weighted ones among the first `count` entries.
  int64_t valuesBefore(const StreamSet &set, size_t count) const {
    int64_t values = 0;
    for (size_t e = 0; e < count; ++e)
      if (isWeighted(set.entries[e]))
        values += idsOf(set, set.entries[e]);
    return values;
  }

  /// Gradients of an entry on the samples of one rank.
  struct EntryGradients {
    const float *first;
    int64_t stride;
  };

  /// Values for one rank, entry after entry, from `next` on. `received` begins
  /// with `firstRank`.
  template <typename GradientsOf>
  float *addParts(const StreamSet &set, const ReceivedSet &received,
                  int64_t firstRank, size_t peer,
                  const GradientsOf &gradientsOf, float *next,
                  std::vector<WeightGradientPart> &parts) const {
    for (size_t e = 0; e < set.entries.size(); ++e) {
      const EntryLayout &entry = set.entries[e];
      if (!isWeighted(entry) ||
          !entry.readers.contains(firstRank + static_cast<int64_t>(peer)))
        continue;
      PeerIds ids = received.idsOf(set.entries, e, peer);
      EntryGradients of = ids.numIds > 0 ? gradientsOf(e) : EntryGradients{};
      parts.push_back({entry.kernel, ids, of.first, of.stride, next});
      next += ids.numIds;
    }
    return next;
  }

  /// Those of each entry of replicated tables on the local batch.
  std::vector<EntryGradients> localGradients() const {
    std::vector<EntryGradients> all(gradients.localRows.size());
    const std::vector<int32_t> &gathered = gradients.replicas.gathered.entries;
    for (size_t e = 0; e < gathered.size(); ++e) {
      const ReceivedBlock &own =
          gradients.gatheredGradients[static_cast<size_t>(device.rank())];
      all[static_cast<size_t>(gathered[e])] = {own.at(e), own.block.stride[e]};
    }
    for (int32_t entry : gradients.replicas.summed.entries) {
      const LocalRows &rows = gradients.localRows[static_cast<size_t>(entry)];
      all[static_cast<size_t>(entry)] = {
          reinterpret_cast<const float *>(rows.first), rows.stride};
    }
    return all;
  }

  /// Number of this owner's values for each rank.
  std::vector<int64_t> ownedValues() const {
    const StreamSet &set = layout.owners[device.rank()];
    std::vector<int64_t> values;
    for (const std::vector<int64_t> &ids : routed.ownedIdsOfPeer) {
      auto rank = static_cast<int64_t>(values.size());
      int64_t &count = values.emplace_back();
      for (const EntryLayout &entry : set.entries)
        if (isWeighted(entry) && entry.readers.contains(rank))
          count += ids[static_cast<size_t>(entry.stream)];
    }
    return values;
  }

  Buffer acquire(int64_t values) {
    return device.buffers->acquire(BufferKind::SampleWeights,
                                   values * kValueBytes);
  }

  /// Values of owned tables for all ranks, rank after rank.
  Buffer computeOwned(const std::vector<int64_t> &values) {
    Buffer result = acquire(beginsOf(values).back());
    std::vector<WeightGradientPart> parts;
    float *next = as<float>(result);
    for (size_t peer = 0; peer < values.size(); ++peer) {
      const ReceivedBlock &block = gradients.gradients[peer];
      auto ofEntry = [&](size_t e) -> EntryGradients {
        return {block.at(e), block.block.stride[e]};
      };
      next = addParts(layout.owners[device.rank()], routed.owned, 0, peer,
                      ofEntry, next, parts);
    }
    device.backend->computeWeightGradients(parts);
    divideByFactors(parts);
    return result;
  }

  /// Gradients of tables with copies that drift are those of the results times
  /// a factor, which is not for sample weights.
  void divideByFactors(std::span<const WeightGradientPart> parts) {
    std::vector<RowMove> moves;
    for (const WeightGradientPart &part : parts) {
      int32_t slot = device.program.lookups[part.lookup].slot;
      float factor = device.plan->gradientFactors[static_cast<size_t>(
          device.slots[static_cast<size_t>(slot)].spec().table)];
      if (factor == 1 || part.ids.numIds == 0)
        continue;
      auto *values = reinterpret_cast<std::byte *>(part.out);
      moves.push_back(moveOf(values, WireFormat::F32, values, WireFormat::F32,
                             part.ids.numIds));
      moves.back().scale = 1 / factor;
    }
    if (!moves.empty())
      device.backend->moveRows(moves);
  }

  /// Values of replicated tables for the local batch.
  Buffer computeReplicated() {
    if (!layout.hasReplicated)
      return nullptr;
    const StreamSet &set = layout.locals[device.rank()];
    Buffer result = acquire(valuesBefore(set, set.entries.size()));
    std::vector<WeightGradientPart> parts;
    std::vector<EntryGradients> local = localGradients();
    addParts(
        set, routed.local, device.rank(), 0, [&](size_t e) { return local[e]; },
        as<float>(result), parts);
    device.backend->computeWeightGradients(parts);
    return result;
  }

  /// Returns the values of each owner's entries for the local batch.
  std::vector<const float *> exchangeOwned() {
    std::vector<const float *> result;
    if (!needsExchange())
      return result;
    std::vector<int64_t> sendBytes = ownedValues();
    kept = computeOwned(sendBytes);
    if (device.numDevices() == 1)
      return {as<const float>(kept)};
    std::vector<int64_t> receiveBytes;
    for (const StreamSet &set : layout.owners)
      receiveBytes.push_back(valuesBefore(set, set.entries.size()) *
                             kValueBytes);
    for (int64_t &bytes : sendBytes)
      bytes *= kValueBytes;
    countSentBytes(device, Phase::WeightsGradient, sendBytes);
    request = device.communicator->startAllToAll(MessageKind::WeightsGradient,
                                                 MessageMemory::Device, kept,
                                                 sendBytes, receiveBytes);
    for (const std::byte *message : waitForAll(*request))
      result.push_back(reinterpret_cast<const float *>(message));
    return result;
  }

  void addLookup(size_t lookup, const std::vector<const float *> &fromOwners,
                 const float *local, std::vector<PlacedValues> &values) const {
    const ResultLayout &result = layout.results[lookup];
    if (result.replicated)
      addValues(lookup, layout.bucketsOfLookup[lookup][0],
                local + valuesBefore(layout.locals[device.rank()],
                                     static_cast<size_t>(result.localEntry)),
                values);
    for (const PartialColumns &part : result.parts) {
      EntryPlace place = placeFor(layout, part, device.rank());
      addValues(lookup, part.bucket,
                fromOwners[static_cast<size_t>(place.device)] +
                    valuesBefore(layout.owners[place.device],
                                 static_cast<size_t>(place.entry)),
                values);
    }
  }

  void addValues(size_t lookup, int32_t bucket, const float *first,
                 std::vector<PlacedValues> &values) const {
    const BucketState &state = routed.buckets[bucket];
    values.push_back({first, state.numIds, as<const int64_t>(state.places),
                      routed.lookups[lookup].firstId});
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
