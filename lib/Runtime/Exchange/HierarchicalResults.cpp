//===- HierarchicalResults.cpp - Hierarchical all-to-all of results -------===//
//
// First stage: relayed partial sums to the relays of the owner's group, direct
// results to the ranks of the samples. Second stage: one sum from each group to
// the rank of each sample. Relayed results are looked up and sent in pieces
// (RelayPieces.h); direct ones are in the messages of the first.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "HierarchicalAllToAll.h"
#include "neuroshard/Artifact/Error.h"

#include <utility>

namespace neuroshard::runtime {
namespace {

/// The messages of a piece's first stage, rank after rank: to each its direct
/// values and, if it is in the owner's group, what it adds up for the ranks
/// that it serves.
Buffer packResults(const HierarchicalExchange &exchange, const Routed &routed,
                   const Partials &partials, const RelayedPiece &piece,
                   const std::vector<int64_t> &directSizes, int64_t total) {
  Device &device = exchange.device;
  const StreamSet &set = exchange.layout.owners[device.rank()];
  Buffer message =
      device.buffers->acquire(BufferKind::SentResults, exchange.bytesOf(total));
  std::byte *to = message.get();
  std::vector<RowMove> moves;
  auto add = [&](int64_t begin, const std::vector<RowsOfMessage> &pieces) {
    for (const RowsOfMessage &rows : pieces)
      rows.addPacking(as<const float>(partials.send) + begin, to,
                      exchange.format, moves);
  };
  for (int64_t peer = 0; peer < exchange.numRanks(); ++peer) {
    auto index = static_cast<size_t>(peer);
    if (directSizes[index] > 0)
      add(partials.sendBegins[index],
          directRows(set, peer, routed.batchOfPeer[index],
                     routed.ownedIdsOfPeer[index], exchange.format));
    to += exchange.bytesOf(directSizes[index]);
    if (!exchange.groups.sameGroup(peer, exchange.rank))
      continue;
    for (int32_t sampleRank : exchange.ranksServedBy(peer)) {
      auto sample = static_cast<size_t>(sampleRank);
      add(partials.sendBegins[sample] + partials.sendBlocks[sample].directSize +
              piece.begins[sample] * set.relayedWidth,
          exchange.relayedRows(sampleRank));
      to += exchange.bytesOf(exchange.ofSamples(exchange.rank, sampleRank));
    }
  }
  device.backend->moveRows(moves);
  return message;
}

/// Adds up the partial sums that the devices of the group have of one rank's
/// samples.
class SumAdder {
public:
  explicit SumAdder(const HierarchicalExchange &exchange)
      : exchange(exchange), sums(exchange.columnsOfRelays(
                                exchange.groups.placeOf(exchange.rank).group)) {
    for (int32_t owner : exchange.ownGroup())
      ofOwners.push_back(exchange.columnsOfOwner(owner));
  }

  /// `rows`: where they begin, per device of the group.
  void add(const std::vector<const std::byte *> &rows, int32_t sampleRank,
           std::byte *to, std::vector<RowMove> &moves) const {
    auto source = [&](const RelaySource &part) {
      auto index = static_cast<size_t>(part.index);
      const ScaledColumns &columns = ofOwners[index];
      return SourceRows{rows[index] + exchange.bytesOf(columns.at(part.column)),
                        columns.width()};
    };
    for (const RelaySum &sum : exchange.relay.sums) {
      RowMove &move = moves.emplace_back();
      move.source = source(sum.sources[0]);
      for (size_t i = 1; i < sum.sources.size(); ++i)
        move.addends.push_back(source(sum.sources[i]));
      move.target = {to + exchange.bytesOf(sums.at(sum.column)), sums.width()};
      move.sourceFormat = move.targetFormat = exchange.format;
      move.rows = exchange.batches[static_cast<size_t>(sampleRank)];
      move.width = sum.size;
    }
  }

private:
  const HierarchicalExchange &exchange;
  ScaledColumns sums;
  std::vector<ScaledColumns> ofOwners; ///< per device of the group.
};

/// The sums that this relay sends, in the order of the receiving ranks. `rows`
/// are per device of the group, each in the order of the groups of the ranks.
Buffer addUpAll(const HierarchicalExchange &exchange,
                std::vector<const std::byte *> rows,
                const std::vector<int64_t> &counts) {
  Device &device = exchange.device;
  std::vector<int64_t> begins = beginsOf(counts);
  Buffer sums = device.buffers->acquire(BufferKind::RelayedResults,
                                        exchange.bytesOf(begins.back()));
  SumAdder adder(exchange);
  std::vector<RowMove> moves;
  for (int32_t sampleRank : exchange.ranksServedBy(exchange.rank)) {
    adder.add(rows, sampleRank,
              sums.get() +
                  exchange.bytesOf(begins[static_cast<size_t>(sampleRank)]),
              moves);
    for (size_t m = 0; m < rows.size(); ++m)
      rows[m] += exchange.bytesOf(
          exchange.ofSamples(exchange.ownGroup()[m], sampleRank));
  }
  device.backend->moveRows(moves);
  return sums;
}

/// Adds up the partial sums of a piece's first stage and sends them on.
void sendSums(const HierarchicalExchange &exchange,
              const std::vector<const std::byte *> &messages,
              const std::vector<int64_t> &directSizes, RelayedPiece &piece) {
  Device &device = exchange.device;
  std::vector<const std::byte *> ofOwners;
  for (int32_t owner : exchange.ownGroup()) {
    auto index = static_cast<size_t>(owner);
    ofOwners.push_back(messages[index] + exchange.bytesOf(directSizes[index]));
  }
  std::vector<int64_t> counts = exchange.countsOf([&](int64_t peer) {
    return exchange.relayToSamples(exchange.rank, peer);
  });
  piece.relayRequest =
      startValues(device, MessageKind::ResultsSecondHop,
                  addUpAll(exchange, std::move(ofOwners), counts), counts,
                  exchange.countsOf([&](int64_t peer) {
                    return exchange.relayToSamples(peer, exchange.rank);
                  }));
}

} // namespace

void startRelayedResults(
    Device &device, const Routed &routed, Partials &partials,
    const std::function<void(const RelayedPiece &)> &lookUp) {
  WireFormat format = device.wireType().results;
  std::vector<Block> send = makeDirectOwnerBlocks(
      device.layout(routed.exchange), device, routed, format);
  std::vector<Block> receive =
      makeBatchBlocks(device.layout(routed.exchange), device, routed, format);
  partials.pieces =
      makePieces(device.layout(routed.exchange), device, routed, format);
  for (RelayedPiece &piece : partials.pieces) {
    lookUp(piece);
    PhaseTimer timer(device.figures, Phase::ResultsExchange);
    HierarchicalExchange exchange(device.layout(routed.exchange), device,
                                  format, piece.batches);
    bool isFirst = &piece == &partials.pieces.front();
    std::vector<int64_t> sent = directSizes(send, isFirst);
    std::vector<int64_t> received = directSizes(receive, isFirst);
    std::vector<int64_t> counts = exchange.countsOf([&](int64_t peer) {
      return sent[static_cast<size_t>(peer)] +
             exchange.ownerToRelay(exchange.rank, peer);
    });
    piece.request =
        startValues(device, MessageKind::Results,
                    packResults(exchange, routed, partials, piece, sent,
                                beginsOf(counts).back()),
                    counts, exchange.countsOf([&](int64_t peer) {
                      return received[static_cast<size_t>(peer)] +
                             exchange.ownerToRelay(peer, exchange.rank);
                    }));
  }
  device.resultsToRelay.push_back({&routed, &partials});
}

void startSecondStageOfResults(Device &device, const Routed &routed,
                               Partials &partials) {
  WireFormat format = device.wireType().results;
  partials.receivedBlocks =
      makeBatchBlocks(device.layout(routed.exchange), device, routed, format);
  for (RelayedPiece &piece : partials.pieces) {
    bool isFirst = &piece == &partials.pieces.front();
    std::vector<const std::byte *> messages = waitForAll(*piece.request);
    if (isFirst)
      partials.receivedRows = messages;
    sendSums(HierarchicalExchange(device.layout(routed.exchange), device,
                                  format, piece.batches),
             messages, directSizes(partials.receivedBlocks, isFirst), piece);
  }
}

void receiveRelayedResults(Device &device, const Routed &routed,
                           Partials &partials) {
  HierarchicalExchange exchange(device.layout(routed.exchange), device, routed,
                                device.wireType().results);
  for (RelayedPiece &piece : partials.pieces) {
    if (!piece.relayRequest)
      fail("the results of this step were not relayed: the group has ended");
    std::vector<const std::byte *> sums = waitForAll(*piece.relayRequest);
    for (int32_t relay :
         exchange.ranksServedBy(exchange.rank)) // one in each group
      piece.rows.push_back(sums[static_cast<size_t>(relay)]);
  }
}

} // namespace neuroshard::runtime
