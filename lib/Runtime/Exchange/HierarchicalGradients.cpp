//===- HierarchicalGradients.cpp - Hierarchical all-to-all of gradients ---===//
//
// First stage: direct gradients to their owners, and the relayed gradients of
// each bag once to the relay of each group. Second stage: relays copy the
// columns to their owners in the wire type, so that nothing is rounded twice.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "HierarchicalAllToAll.h"
#include "RowViews.h"

#include <cstring>

namespace neuroshard::runtime {
namespace {

/// The values of `gradients.send` that the first stage sends, rank after rank.
std::vector<Values> gradientsToSend(const HierarchicalExchange &exchange,
                                    const Partials &gradients) {
  const float *direct = as<const float>(gradients.send);
  const float *next = direct + totalFloats(gradients.sendBlocks);
  std::vector<Values> ofGroup;
  for (int32_t relay : exchange.ranksServedBy(exchange.rank)) {
    ofGroup.push_back({next, exchange.relayToSamples(relay, exchange.rank)});
    next += ofGroup.back().count;
  }
  std::vector<Values> values;
  for (int64_t peer = 0; peer < exchange.numRanks(); ++peer) {
    int64_t size = gradients.sendBlocks[static_cast<size_t>(peer)].size;
    values.push_back({direct, size});
    direct += size;
    if (exchange.groups.placeOf(peer).index == exchange.ownIndex())
      values.push_back(
          ofGroup[static_cast<size_t>(exchange.groups.placeOf(peer).group)]);
  }
  return values;
}

/// Consecutive columns that a relay copies from the gradient of a bag to one
/// owner's.
struct ColumnCopy {
  int64_t from;
  int64_t to;
  int64_t count;
};

std::vector<ColumnCopy> copiesFor(const RelayLayout &relay, int32_t index) {
  std::vector<ColumnCopy> copies;
  for (const RelaySum &sum : relay.sums)
    for (const RelaySource &source : sum.sources)
      if (source.index == index)
        copies.push_back({sum.column, source.column, sum.size});
  return copies;
}

/// Writes the gradients of one rank's samples that one owner gets.
void handOut(const HierarchicalExchange &exchange, int32_t owner,
             int32_t sampleRank, const std::byte *from, std::byte *to) {
  int64_t bytes = wireBytes(exchange.device, 1);
  int64_t width =
      exchange.layout.owners[static_cast<size_t>(owner)].relayedWidth;
  std::vector<ColumnCopy> copies =
      copiesFor(exchange.relay, exchange.groups.placeOf(owner).index);
  auto copyRows = [&](int64_t begin, int64_t end) {
    for (int64_t bag = begin; bag < end; ++bag)
      for (const ColumnCopy &copy : copies)
        std::memcpy(to + (bag * width + copy.to) * bytes,
                    from + (bag * exchange.relay.width + copy.from) * bytes,
                    static_cast<size_t>(copy.count * bytes));
  };
  forRowRanges(exchange.device.threads,
               exchange.batches[static_cast<size_t>(sampleRank)], width,
               copyRows);
}

/// Waits for the first stage and begins the second.
void startSecondStageOfGradients(const HierarchicalExchange &exchange,
                                 Partials &gradients) {
  const auto &messages = gradients.request->wait();
  std::vector<int64_t> counts = exchange.countsOf([&](int64_t owner) {
    return exchange.ownerToRelay(owner, exchange.rank);
  });
  int64_t total = 0;
  for (int64_t count : counts)
    total += count;
  Buffer send = exchange.device.buffers->acquire(
      BufferKind::RelayedGradients, wireBytes(exchange.device, total));
  std::byte *to = send.get();
  for (int32_t owner = 0; owner < exchange.numRanks(); ++owner) {
    if (!exchange.groups.sameGroup(owner, exchange.rank))
      continue;
    for (int32_t sampleRank : exchange.ranksServedBy(exchange.rank)) {
      int64_t direct =
          gradients.receivedBlocks[static_cast<size_t>(sampleRank)].directSize;
      handOut(exchange, owner, sampleRank,
              messages[static_cast<size_t>(sampleRank)].data() +
                  wireBytes(exchange.device, direct),
              to);
      to += wireBytes(exchange.device, exchange.ofSamples(owner, sampleRank));
    }
  }
  gradients.relayRequest =
      startValues(exchange.device, Phase::GradientsExchange, send, counts,
                  exchange.countsOf([&](int64_t peer) {
                    return exchange.ownerToRelay(exchange.rank, peer);
                  }));
}

} // namespace

int64_t relayedGradientValues(const ExchangeLayout &layout,
                              const Routed &routed) {
  int64_t width = 0;
  for (const RelayLayout &relay : layout.relays)
    width += relay.width;
  return width * routed.batch;
}

void startRelayedGradients(Device &device, const Routed &routed,
                           Partials &gradients) {
  HierarchicalExchange exchange(device, routed);
  std::vector<Block> receive = makeOwnerBlocks(
      exchange.layout.owners[static_cast<size_t>(exchange.rank)], routed.owned);
  gradients.request = startValues(
      device, Phase::GradientsExchange,
      encodeAll(device, BufferKind::SentGradients,
                gradientsToSend(exchange, gradients)),
      exchange.countsOf([&](int64_t peer) {
        return gradients.sendBlocks[static_cast<size_t>(peer)].size +
               exchange.relayToSamples(peer, exchange.rank);
      }),
      exchange.countsOf([&](int64_t peer) {
        return receive[static_cast<size_t>(peer)].directSize +
               exchange.relayToSamples(exchange.rank, peer);
      }));
}

std::vector<const std::byte *> receiveRelayedGradients(Device &device,
                                                       const Routed &routed,
                                                       Partials &gradients) {
  HierarchicalExchange exchange(device, routed);
  startSecondStageOfGradients(exchange, gradients);
  const auto &messages = gradients.relayRequest->wait();
  std::vector<const std::byte *> ofRank(
      static_cast<size_t>(exchange.numRanks()));
  for (int32_t relay : exchange.ownGroup()) {
    const std::byte *rows = messages[static_cast<size_t>(relay)].data();
    for (int32_t sampleRank : exchange.ranksServedBy(relay)) {
      ofRank[static_cast<size_t>(sampleRank)] = rows;
      rows += wireBytes(device, exchange.ofSamples(exchange.rank, sampleRank));
    }
  }
  return ofRank;
}

} // namespace neuroshard::runtime
