//===- HierarchicalGradients.cpp - Hierarchical all-to-all of gradients ---===//
//
// First stage: direct gradients to their owners, and the relayed gradients of
// each bag once to the relay of each group. Second stage: relays copy the
// columns to their owners in the wire type, so that nothing is rounded twice.
// Relayed gradients come in pieces (RelayPieces.h); direct ones are in the
// messages of the first.
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

/// Waits for the first stage of a piece and begins the second. Returns the
/// messages of the first, by rank.
std::vector<const std::byte *>
startSecondStage(const HierarchicalExchange &exchange,
                 const std::vector<int64_t> &directSizes, RelayedPiece &piece) {
  Device &device = exchange.device;
  std::vector<const std::byte *> messages = waitForAll(*piece.request);
  std::vector<int64_t> counts = exchange.countsOf([&](int64_t owner) {
    return exchange.ownerToRelay(owner, exchange.rank);
  });
  Buffer send = device.buffers->acquire(
      BufferKind::RelayedGradients, exchange.bytesOf(beginsOf(counts).back()));
  CopyAdder adder(exchange);
  std::byte *to = send.get();
  std::vector<RowMove> moves;
  for (int32_t owner = 0; owner < exchange.numRanks(); ++owner) {
    if (!exchange.groups.sameGroup(owner, exchange.rank))
      continue;
    for (int32_t sampleRank : exchange.ranksServedBy(exchange.rank)) {
      auto peer = static_cast<size_t>(sampleRank);
      to = adder.add(owner, sampleRank,
                     messages[peer] + exchange.bytesOf(directSizes[peer]), to,
                     moves);
    }
  }
  device.backend->moveRows(moves);
  piece.relayRequest =
      startValues(device, MessageKind::GradientsSecondHop, send, counts,
                  exchange.countsOf([&](int64_t peer) {
                    return exchange.ownerToRelay(exchange.rank, peer);
                  }));
  return messages;
}

/// Waits for the second stage of a piece.
void finishSecondStage(const HierarchicalExchange &exchange,
                       RelayedPiece &piece) {
  std::vector<const std::byte *> messages = waitForAll(*piece.relayRequest);
  piece.rows.resize(static_cast<size_t>(exchange.numRanks()));
  for (int32_t relay : exchange.ownGroup()) {
    const std::byte *rows = messages[static_cast<size_t>(relay)];
    for (int32_t sampleRank : exchange.ranksServedBy(relay)) {
      piece.rows[static_cast<size_t>(sampleRank)] = rows;
      rows += exchange.bytesOf(exchange.ofSamples(exchange.rank, sampleRank));
    }
  }
}

} // namespace

int64_t placeGradients(Device &device, const Routed &routed,
                       Partials &gradients) {
  const ExchangeLayout &layout = device.gradientLayout(routed);
  if (layout.relays.empty()) {
    gradients.sendBegins = beginsOf(sizesOf(gradients.sendBlocks));
    return gradients.sendBegins.back();
  }
  WireFormat format = device.wireType().gradients;
  gradients.pieces =
      makePieces(device.gradientLayout(routed), device, routed, format);
  int64_t next = 0;
  for (RelayedPiece &piece : gradients.pieces) {
    HierarchicalExchange exchange(device.gradientLayout(routed), device, format,
                                  piece.batches);
    bool isFirst = &piece == &gradients.pieces.front();
    piece.sendBegin = next;
    piece.relayBegins.resize(layout.relays.size());
    for (int64_t peer = 0; peer < exchange.numRanks(); ++peer) {
      if (isFirst) {
        gradients.sendBegins.push_back(next);
        next += gradients.sendBlocks[static_cast<size_t>(peer)].size;
      }
      GroupPlace place = exchange.groups.placeOf(peer);
      if (place.index == exchange.groups.placeOf(exchange.rank).index)
        piece.relayBegins[static_cast<size_t>(place.group)] = next;
      next += exchange.relayToSamples(peer, exchange.rank);
    }
  }
  return next;
}

void startRelayedGradients(Device &device, const Routed &routed,
                           Partials &gradients) {
  WireFormat format = device.wireType().gradients;
  std::vector<Block> receive = makeDirectOwnerBlocks(
      device.gradientLayout(routed), device, routed, format);
  for (RelayedPiece &piece : gradients.pieces) {
    HierarchicalExchange exchange(device.gradientLayout(routed), device, format,
                                  piece.batches);
    bool isFirst = &piece == &gradients.pieces.front();
    std::vector<int64_t> sent = directSizes(gradients.sendBlocks, isFirst);
    std::vector<int64_t> received = directSizes(receive, isFirst);
    Buffer message(gradients.send,
                   gradients.send.get() + exchange.bytesOf(piece.sendBegin));
    piece.request =
        startValues(device, MessageKind::Gradients, message,
                    exchange.countsOf([&](int64_t peer) {
                      return sent[static_cast<size_t>(peer)] +
                             exchange.relayToSamples(peer, exchange.rank);
                    }),
                    exchange.countsOf([&](int64_t peer) {
                      return received[static_cast<size_t>(peer)] +
                             exchange.relayToSamples(exchange.rank, peer);
                    }));
  }
}

void receiveRelayedGradients(Device &device, const Routed &routed,
                             Partials &gradients) {
  WireFormat format = device.wireType().gradients;
  std::vector<Block> direct = makeDirectOwnerBlocks(
      device.gradientLayout(routed), device, routed, format);
  std::vector<RelayedPiece> &pieces = gradients.pieces;
  for (RelayedPiece &piece : pieces) {
    bool isFirst = &piece == &pieces.front();
    std::vector<const std::byte *> messages =
        startSecondStage(HierarchicalExchange(device.gradientLayout(routed),
                                              device, format, piece.batches),
                         directSizes(direct, isFirst), piece);
    if (isFirst)
      gradients.receivedRows = messages;
  }
  for (RelayedPiece &piece : pieces)
    finishSecondStage(HierarchicalExchange(device.gradientLayout(routed),
                                           device, format, piece.batches),
                      piece);
}

} // namespace neuroshard::runtime
