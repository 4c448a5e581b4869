//===- RouteIds.cpp - Sends the ids of the local batch to their owners ----===//
//
// Ranks first exchange headers with the numbers of all ids and the length of an
// error's text. If a rank has found an error, all ranks exchange texts instead
// of ids and end the step with the same cause.
//
//===----------------------------------------------------------------------===//

#include "HeaderExchange.h"
#include "HierarchicalIds.h"
#include "IdExchange.h"
#include "InPlaceIds.h"
#include "RelayDuties.h"
#include "Wire.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/IdHeader.h"
#include "neuroshard/Artifact/IdPayload.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace neuroshard::runtime {
namespace {

using Numbers = std::vector<int64_t>;

constexpr int64_t kNumberBytes = sizeof(int64_t);

void checkShape(const ExchangeSpec &spec, const JaggedInput &input) {
  int64_t features = static_cast<int64_t>(spec.features.size());
  if (input.numIds < 0)
    fail(spec.where, "negative number of ids ", input.numIds);
  if (input.numOffsets < 1 || (input.numOffsets - 1) % features != 0)
    fail(spec.where, "expected features x batch + 1 offsets (", features,
         " features), found ", input.numOffsets);
  if (!input.offsets || (input.numIds > 0 && !input.ids))
    fail(spec.where, "ids or offsets are null");
  if (spec.weighted && input.numIds > 0 && !input.weights)
    fail(spec.where, "the input is weighted, but its weights are null");
}

/// Packs the ids of the local batch.
class Packing {
public:
  Packing(Device &device, const JaggedInput &input, Routed &routed)
      : device(device), spec(device.manifest().exchanges[routed.exchange]),
        layout(device.layout(routed.exchange)), routed(routed),
        packedIdBytes(device.packedIdBytes(routed.exchange)),
        packer(device.backend->packIds(routed.exchange, input, routed.batch)) {}

  /// Throws a RuntimeError if offsets or an id are wrong.
  void run() {
    takeCounts(packer->count());
    targets.ofBucket.resize(layout.buckets.size());
    placeOwned();
    placeReplicated();
    placeNumbers();
    packer->pack(targets);
  }

  /// Of the payload for each device.
  Numbers payloadBytes;

private:
  void takeCounts(const IdCounts &counts) {
    for (size_t b = 0; b < routed.buckets.size(); ++b)
      routed.buckets[b].numIds = counts.ofBucket[b];
    for (size_t k = 0; k < spec.lookups.size(); ++k) {
      auto feature = static_cast<size_t>(spec.lookups[k].feature);
      LookupState &state = routed.lookups[k];
      state.firstId = counts.firstOfFeature[feature];
      if (!spec.lookups[k].pooled())
        state.resultRows = counts.firstOfFeature[feature + 1] - state.firstId;
    }
  }

  Numbers idsOf(const StreamSet &set) const {
    Numbers ids;
    for (const StreamLayout &stream : set.streams)
      ids.push_back(routed.buckets[stream.bucket].numIds);
    return ids;
  }

  IdTarget targetIn(std::byte *memory, const IdPayload &payload,
                    const StreamLayout &stream, size_t index) const {
    IdTarget target;
    target.ids = memory + payload.ids(index);
    if (stream.weighted)
      target.weights =
          reinterpret_cast<float *>(memory + payload.weights(index));
    if (stream.pooled)
      target.lengths =
          reinterpret_cast<int32_t *>(memory + payload.lengths(index));
    return target;
  }

  void placeOwned() {
    std::vector<const StreamSet *> sets = setsByReceiver(device, layout);
    std::vector<IdPayload> payloads;
    int64_t totalBytes = 0;
    for (const StreamSet *set : sets) {
      payloads.emplace_back(*set, device.rank(), routed.batch, packedIdBytes,
                            idsOf(*set));
      payloadBytes.push_back(payloads.back().bytes());
      totalBytes += payloadBytes.back();
    }
    routed.ownPayload =
        device.buffers->acquire(BufferKind::SentIds, totalBytes);
    std::byte *memory = routed.ownPayload.get();
    for (size_t receiver = 0; receiver < payloads.size(); ++receiver) {
      const StreamSet &set = *sets[receiver];
      for (size_t i = 0; i < set.streams.size(); ++i)
        if (set.streams[i].readers.contains(device.rank()))
          targets.ofBucket[set.streams[i].bucket].push_back(
              targetIn(memory, payloads[receiver], set.streams[i], i));
      memory += payloadBytes[receiver];
    }
    if (device.numDevices() == 1)
      keepOwned();
  }

  /// On a single device kernels read the payload in place.
  void keepOwned() {
    const StreamSet &set = layout.owners[0];
    int64_t numPooled = 0;
    for (const StreamLayout &stream : set.streams)
      numPooled += stream.pooled;
    routed.owned.offsets = device.buffers->acquire(
        BufferKind::ReceivedIds, numPooled * (routed.batch + 1) * kNumberBytes);
    auto *offsets = as<int64_t>(routed.owned.offsets);
    for (const StreamLayout &stream : set.streams) {
      IdTarget &target = targets.ofBucket[stream.bucket][0];
      PeerIds ids;
      ids.ids = target.ids;
      ids.weights = target.weights;
      ids.bags = routed.batch;
      ids.numIds = routed.buckets[stream.bucket].numIds;
      if (stream.pooled) {
        ids.offsets = target.offsets = offsets;
        target.lengths = nullptr;
        offsets += routed.batch + 1;
      }
      routed.owned.streams.push_back({ids});
    }
  }

  void placeReplicated() {
    if (!layout.hasReplicated)
      return;
    const StreamSet &set = layout.locals[device.rank()];
    IdPayload payload(set, device.rank(), routed.batch, packedIdBytes,
                      idsOf(set));
    routed.localPayloadBytes = payload.bytes();
    routed.localPayload =
        device.buffers->acquire(BufferKind::SentIds, payload.bytes());
    for (size_t i = 0; i < set.streams.size(); ++i)
      targets.ofBucket[set.streams[i].bucket].push_back(
          targetIn(routed.localPayload.get(), payload, set.streams[i], i));
  }

  void placeNumbers() {
    for (size_t b = 0; b < layout.buckets.size(); ++b) {
      const BucketLayout &bucket = layout.buckets[b];
      const ExchangeLookup &lookup = spec.lookups[bucket.lookup];
      BucketState &state = routed.buckets[b];
      if (!bucket.whole && (!lookup.pooled() || lookup.weighted))
        state.places = device.buffers->acquire(BufferKind::Places,
                                               state.numIds * kNumberBytes);
      targets.places.push_back(as<int64_t>(state.places));
    }
    for (size_t k = 0; k < spec.lookups.size(); ++k) {
      Buffer &counts = routed.lookups[k].bagCounts;
      if (spec.lookups[k].pooling == Pooling::Mean)
        counts = device.buffers->acquire(
            BufferKind::Places,
            routed.batch * static_cast<int64_t>(sizeof(float)));
      targets.bagCounts.push_back(as<float>(counts));
    }
  }

  Device &device;
  const ExchangeSpec &spec;
  const ExchangeLayout &layout;
  Routed &routed;
  int32_t packedIdBytes;
  std::unique_ptr<IdPacker> packer;
  PackTargets targets;
};

int64_t &numberOf(Numbers &header, IdHeader number) {
  return header[static_cast<size_t>(number)];
}

/// Ids of this rank for each stream; none if it is no reader.
void addIds(const Device &device, const StreamSet &set, const Routed &routed,
            Numbers &header) {
  for (const StreamLayout &stream : set.streams)
    header.push_back(stream.readers.contains(device.rank())
                         ? routed.buckets[stream.bucket].numIds
                         : 0);
}

/// The header for each device, one after the other.
Numbers makeHeaders(const Device &device, const Routed &routed,
                    const std::string &error) {
  const ExchangeLayout &layout = device.layout(routed.exchange);
  std::vector<const StreamSet *> sets = setsByReceiver(device, layout);
  Numbers all;
  for (size_t receiver = 0; receiver < layout.owners.size(); ++receiver) {
    all.insert(all.end(), {routed.exchange, static_cast<int64_t>(error.size()),
                           routed.batch, device.order.hash(),
                           hashOfFrozen(routed.frozen)});
    addIds(device, layout.owners[receiver], routed, all);
    addIds(device, layout.locals[receiver], routed, all);
    if (!layout.groupIds.empty())
      addIds(device, *sets[receiver], routed, all);
    all.resize((receiver + 1) * device.plan->headerNumbers);
  }
  return all;
}

std::string callOf(int64_t exchange) {
  return exchange == kAveragesCopies
             ? "averages copies"
             : "routes exchange " + std::to_string(exchange);
}

/// The time of relaying is that of the phases that it is part of. `exchange`:
/// what the rank's own headers begin with.
std::vector<Numbers> exchangeHeaders(Device &device, int64_t exchange,
                                     const Numbers &own) {
  std::optional<PhaseTimer> timer(std::in_place, device.figures,
                                  Phase::IdsExchange);
  std::vector<Numbers> headers = swapHeaders(device, own, [&] {
    timer.reset();
    relayAll(device);
    timer.emplace(device.figures, Phase::IdsExchange);
  });
  for (size_t rank = 0; rank < headers.size(); ++rank)
    if (int64_t other = numberOf(headers[rank], IdHeader::Exchange);
        other != exchange)
      fail(callOf(exchange), " while rank ", rank, " ", callOf(other),
           "; all ranks must run the same function");
  return headers;
}

void requireSameOrder(const Device &device, std::vector<Numbers> &headers) {
  for (size_t peer = 0; peer < headers.size(); ++peer)
    if (numberOf(headers[peer], IdHeader::CallOrder) != device.order.hash())
      fail("has exchanged results and gradients in another order than rank ",
           peer,
           ", has looked rows up for other modules, or has updated by another "
           "learning rate, number of steps or set of tables, so that tables "
           "have wrong updates; look rows up, run backwards and set these "
           "alike on all ranks, and begin again from a checkpoint");
}

void requireSameFrozen(const Device &device, const Routed &routed,
                       std::vector<Numbers> &headers) {
  for (size_t peer = 0; peer < headers.size(); ++peer)
    if (numberOf(headers[peer], IdHeader::Frozen) !=
        hashOfFrozen(routed.frozen))
      fail("has other frozen tables than rank ", peer, ": ",
           namesOf(routed.frozen, device.manifest()),
           "; freeze and unfreeze tables alike on all ranks, and begin again "
           "from a checkpoint");
}

/// Returns the text of the first rank that has one.
std::string exchangeErrors(Device &device, const std::string &error,
                           std::vector<Numbers> &headers) {
  Numbers bytes;
  for (Numbers &header : headers)
    bytes.push_back(numberOf(header, IdHeader::ErrorBytes));
  auto request = device.communicator->startAllGather(
      MessageKind::Ids, MessageMemory::Host,
      onHost(device, error.data(), error.size()),
      static_cast<int64_t>(error.size()), bytes);
  for (const auto &text : request->wait())
    if (!text.empty())
      return std::string(reinterpret_cast<const char *>(text.data()),
                         text.size());
  return error;
}

/// Takes the numbers of one rank, which are in the order of the streams.
void takeHeader(const ExchangeLayout &layout, size_t own, Numbers &header,
                Routed &routed) {
  routed.batchOfPeer.push_back(numberOf(header, IdHeader::Batch));
  auto owned = header.begin() + static_cast<int64_t>(IdHeader::Counts);
  auto local = owned + static_cast<int64_t>(layout.owners[own].streams.size());
  auto group = local + static_cast<int64_t>(layout.locals[own].streams.size());
  routed.ownedIdsOfPeer.emplace_back(owned, local);
  routed.localIdsOfPeer.emplace_back(local, group);
  routed.groupIdsOfPeer.emplace_back(group, header.end());
}

void send(Device &device, Routed &routed, Numbers payloadBytes,
          const std::string &error) {
  const ExchangeLayout &layout = device.layout(routed.exchange);
  std::vector<Numbers> headers = exchangeHeaders(
      device, routed.exchange, makeHeaders(device, routed, error));
  PhaseTimer timer(device.figures, Phase::IdsExchange);
  bool anyFailed =
      std::any_of(headers.begin(), headers.end(), [](Numbers &header) {
        return numberOf(header, IdHeader::ErrorBytes) > 0;
      });
  if (anyFailed) {
    // Ranks may be apart because of it.
    routed.error = exchangeErrors(device, error, headers);
    return;
  }
  requireSameOrder(device, headers);
  requireSameFrozen(device, routed, headers);
  for (Numbers &header : headers)
    takeHeader(layout, static_cast<size_t>(device.rank()), header, routed);
  if (!layout.hasRemote)
    return;
  Numbers receiveBytes = bytesOfFirstMessages(device, routed);
  countSentBytes(device, Phase::IdsExchange, payloadBytes);
  routed.request = device.communicator->startAllToAll(
      MessageKind::Ids, MessageMemory::Device, std::move(routed.ownPayload),
      payloadBytes, receiveBytes);
  if (!layout.groupIds.empty())
    device.idsToRelay.push_back(&routed);
}

/// For a single device, where nothing travels.
void keep(const Device &device, Routed &routed, const std::string &error) {
  routed.error = error;
  if (!error.empty())
    return;
  const ExchangeLayout &layout = device.layout(routed.exchange);
  Numbers header = makeHeaders(device, routed, error);
  takeHeader(layout, 0, header, routed);
}

} // namespace

void describeBatch(const Device &device, const JaggedInput &input,
                   Routed &routed) {
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  int64_t features = static_cast<int64_t>(spec.features.size());
  routed.batch = std::max<int64_t>(0, (input.numOffsets - 1) / features);
  routed.numIds = std::max<int64_t>(0, input.numIds);
  routed.lookups.resize(spec.lookups.size());
  routed.buckets.resize(device.layout(routed.exchange).buckets.size());
  for (size_t k = 0; k < spec.lookups.size(); ++k)
    if (spec.lookups[k].pooled())
      routed.lookups[k].resultRows = routed.batch;
  checkShape(spec, input);
}

void requireAllAverage(Device &device) {
  Numbers header(device.plan->headerNumbers);
  header[static_cast<size_t>(IdHeader::Exchange)] = kAveragesCopies;
  header[static_cast<size_t>(IdHeader::CallOrder)] = device.order.hash();
  Numbers own;
  for (int32_t rank = 0; rank < device.numDevices(); ++rank)
    own.insert(own.end(), header.begin(), header.end());
  std::vector<Numbers> headers = exchangeHeaders(device, kAveragesCopies, own);
  requireSameOrder(device, headers);
}

void routeIds(Device &device, const JaggedInput &input, Routed &routed,
              const std::string &earlierError) {
  routed.input = device.order.addInput();
  routed.frozen = device.frozen;
  Numbers payloadBytes;
  std::string error = earlierError;
  if (error.empty()) {
    PhaseTimer timer(device.figures, Phase::Route);
    try {
      if (canReadInPlace(device, routed)) {
        readInPlace(device, input, routed);
      } else {
        Packing packing(device, input, routed);
        packing.run();
        payloadBytes = std::move(packing.payloadBytes);
      }
    } catch (const RuntimeError &failure) {
      error = failure.what();
    }
  }
  if (!error.empty())
    error = "rank " + std::to_string(device.rank()) + ": " + error;
  if (device.numDevices() == 1)
    keep(device, routed, error);
  else
    send(device, routed, std::move(payloadBytes), error);
}

} // namespace neuroshard::runtime
