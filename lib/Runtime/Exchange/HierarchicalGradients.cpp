//===- HierarchicalGradients.cpp - Hierarchical all-to-all of gradients ---===//
//
// First stage: direct gradients to their owners, and the relayed gradients of
// each bag once to the relay of each group. Second stage: relays copy the
// columns to their owners in the wire type, so that nothing is rounded twice.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "HierarchicalAllToAll.h"

namespace neuroshard::runtime {
namespace {

/// Copies columns of one rank's samples to the owners of the group.
class CopyAdder {
public:
  explicit CopyAdder(const HierarchicalExchange &exchange)
      : exchange(exchange), sums(exchange.columnsOfRelays(
                                exchange.groups.placeOf(exchange.rank).group)) {
  }

  /// Those that one owner gets. Returns where the next begin.
  std::byte *add(int32_t owner, int32_t sampleRank, const std::byte *from,
                 std::byte *to, std::vector<RowMove> &moves) const {
    ScaledColumns columns = exchange.columnsOfOwner(owner);
    int32_t index = exchange.groups.placeOf(owner).index;
    for (const RelaySum &sum : exchange.relay.sums)
      for (const RelaySource &source : sum.sources) {
        if (source.index != index)
          continue;
        RowMove &move = moves.emplace_back();
        move.source = {from + exchange.bytesOf(sums.at(sum.column)),
                       sums.width()};
        move.target = {to + exchange.bytesOf(columns.at(source.column)),
                       columns.width()};
        move.sourceFormat = move.targetFormat = exchange.format;
        move.rows = exchange.batches[static_cast<size_t>(sampleRank)];
        move.width = sum.size;
      }
    return to + exchange.bytesOf(exchange.ofSamples(owner, sampleRank));
  }

private:
  const HierarchicalExchange &exchange;
  ScaledColumns sums;
};

/// Waits for the first stage and begins the second.
void startSecondStageOfGradients(const HierarchicalExchange &exchange,
                                 const Routed &routed, Partials &gradients) {
  Device &device = exchange.device;
  std::vector<const std::byte *> messages = waitForAll(*gradients.request);
  std::vector<int64_t> counts = exchange.countsOf([&](int64_t owner) {
    return exchange.ownerToRelay(owner, exchange.rank);
  });
  Buffer send = device.buffers->acquire(
      BufferKind::RelayedGradients, exchange.bytesOf(beginsOf(counts).back()));
  std::vector<Block> direct =
      makeDirectOwnerBlocks(device, routed, exchange.format);
  CopyAdder adder(exchange);
  std::byte *to = send.get();
  std::vector<RowMove> moves;
  for (int32_t owner = 0; owner < exchange.numRanks(); ++owner) {
    if (!exchange.groups.sameGroup(owner, exchange.rank))
      continue;
    for (int32_t sampleRank : exchange.ranksServedBy(exchange.rank)) {
      auto peer = static_cast<size_t>(sampleRank);
      to = adder.add(owner, sampleRank,
                     messages[peer] + exchange.bytesOf(direct[peer].size), to,
                     moves);
    }
  }
  device.backend->moveRows(moves);
  gradients.relayRequest =
      startValues(device, MessageKind::GradientsSecondHop, send, counts,
                  exchange.countsOf([&](int64_t peer) {
                    return exchange.ownerToRelay(exchange.rank, peer);
                  }));
}

} // namespace

int64_t placeGradients(Device &device, const Routed &routed,
                       Partials &gradients) {
  const ExchangeLayout &layout = device.layout(routed.exchange);
  if (layout.relays.empty()) {
    gradients.sendBegins = beginsOf(sizesOf(gradients.sendBlocks));
    return gradients.sendBegins.back();
  }
  HierarchicalExchange exchange(device, routed, device.wireType().gradients);
  gradients.relayBegins.resize(layout.relays.size());
  int64_t next = 0;
  for (int64_t peer = 0; peer < exchange.numRanks(); ++peer) {
    gradients.sendBegins.push_back(next);
    next += gradients.sendBlocks[static_cast<size_t>(peer)].size;
    GroupPlace place = exchange.groups.placeOf(peer);
    if (place.index == exchange.groups.placeOf(exchange.rank).index)
      gradients.relayBegins[static_cast<size_t>(place.group)] = next;
    next += exchange.relayToSamples(peer, exchange.rank);
  }
  return next;
}

void startRelayedGradients(Device &device, const Routed &routed,
                           Partials &gradients) {
  WireFormat format = device.wireType().gradients;
  HierarchicalExchange exchange(device, routed, format);
  std::vector<Block> receive = makeDirectOwnerBlocks(device, routed, format);
  gradients.request = startValues(
      device, MessageKind::Gradients, gradients.send,
      exchange.countsOf([&](int64_t peer) {
        return gradients.sendBlocks[static_cast<size_t>(peer)].size +
               exchange.relayToSamples(peer, exchange.rank);
      }),
      exchange.countsOf([&](int64_t peer) {
        return receive[static_cast<size_t>(peer)].size +
               exchange.relayToSamples(exchange.rank, peer);
      }));
}

std::vector<const std::byte *> receiveRelayedGradients(Device &device,
                                                       const Routed &routed,
                                                       Partials &gradients) {
  HierarchicalExchange exchange(device, routed, device.wireType().gradients);
  startSecondStageOfGradients(exchange, routed, gradients);
  std::vector<const std::byte *> messages = waitForAll(*gradients.relayRequest);
  std::vector<const std::byte *> ofRank(
      static_cast<size_t>(exchange.numRanks()));
  for (int32_t relay : exchange.ownGroup()) {
    const std::byte *rows = messages[static_cast<size_t>(relay)];
    for (int32_t sampleRank : exchange.ranksServedBy(relay)) {
      ofRank[static_cast<size_t>(sampleRank)] = rows;
      rows += exchange.bytesOf(exchange.ofSamples(exchange.rank, sampleRank));
    }
  }
  return ofRank;
}

} // namespace neuroshard::runtime
