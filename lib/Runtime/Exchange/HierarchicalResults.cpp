//===- HierarchicalResults.cpp - Hierarchical all-to-all of results -------===//
//
// First stage: relayed partial sums to the relays of the owner's group, direct
// results to the ranks of the samples. Second stage: one sum from each group to
// the rank of each sample.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "HierarchicalAllToAll.h"

#include <utility>

namespace neuroshard::runtime {
namespace {

/// Values of the first stage for one rank: its block, and, if it is in the
/// owner's group, what it adds up for the ranks that it serves.
int64_t firstStageTo(const HierarchicalExchange &exchange,
                     const Partials &partials, int64_t peer) {
  return partials.sendBlocks[static_cast<size_t>(peer)].directSize +
         exchange.ownerToRelay(exchange.rank, peer);
}

/// The message of the first stage, rank after rank.
Buffer packResults(const HierarchicalExchange &exchange,
                   const Partials &partials) {
  Device &device = exchange.device;
  int64_t total = 0;
  for (int64_t peer = 0; peer < exchange.numRanks(); ++peer)
    total += firstStageTo(exchange, partials, peer);
  Buffer message = device.buffers->acquire(BufferKind::SentResults,
                                           resultBytes(device, total));
  std::byte *to = message.get();
  std::vector<RowMove> moves;
  auto add = [&](int64_t begin, int64_t count) {
    const float *from = as<const float>(partials.send) + begin;
    moves.push_back(moveOf(reinterpret_cast<const std::byte *>(from),
                           ElementType::F32, to, device.wireType().results,
                           count));
    to += resultBytes(device, count);
  };
  for (int64_t peer = 0; peer < exchange.numRanks(); ++peer) {
    auto index = static_cast<size_t>(peer);
    add(partials.sendBegins[index], partials.sendBlocks[index].directSize);
    if (!exchange.groups.sameGroup(peer, exchange.rank))
      continue;
    for (int32_t sampleRank : exchange.ranksServedBy(peer)) {
      auto sample = static_cast<size_t>(sampleRank);
      add(partials.sendBegins[sample] + partials.sendBlocks[sample].directSize,
          exchange.ofSamples(exchange.rank, sampleRank));
    }
  }
  device.backend->moveRows(moves);
  return message;
}

/// Adds up the partial sums that the devices of the group have of one rank's
/// samples. `rows`: where they begin, per device of the group.
void addSums(const HierarchicalExchange &exchange,
             const std::vector<const std::byte *> &rows, int32_t sampleRank,
             std::byte *to, std::vector<RowMove> &moves) {
  const Device &device = exchange.device;
  auto source = [&](const RelaySource &part) {
    auto index = static_cast<size_t>(part.index);
    return SourceRows{rows[index] + resultBytes(device, part.column),
                      exchange.widthOf(exchange.ownGroup()[index])};
  };
  for (const RelaySum &sum : exchange.relay.sums) {
    RowMove &move = moves.emplace_back();
    move.source = source(sum.sources[0]);
    for (size_t i = 1; i < sum.sources.size(); ++i)
      move.addends.push_back(source(sum.sources[i]));
    move.target = {to + resultBytes(device, sum.column), exchange.relay.width};
    move.sourceType = move.targetType = device.wireType().results;
    move.rows = exchange.batches[static_cast<size_t>(sampleRank)];
    move.width = sum.size;
  }
}

/// The sums that this relay sends, in the order of the receiving ranks. `rows`
/// are per device of the group, each in the order of the groups of the ranks.
Buffer addUpAll(const HierarchicalExchange &exchange,
                std::vector<const std::byte *> rows,
                const std::vector<int64_t> &counts) {
  Device &device = exchange.device;
  std::vector<int64_t> begins = beginsOf(counts);
  Buffer sums = device.buffers->acquire(BufferKind::RelayedResults,
                                        resultBytes(device, begins.back()));
  std::vector<RowMove> moves;
  for (int32_t sampleRank : exchange.ranksServedBy(exchange.rank)) {
    addSums(exchange, rows, sampleRank,
            sums.get() +
                resultBytes(device, begins[static_cast<size_t>(sampleRank)]),
            moves);
    for (size_t m = 0; m < rows.size(); ++m)
      rows[m] += resultBytes(
          device, exchange.ofSamples(exchange.ownGroup()[m], sampleRank));
  }
  device.backend->moveRows(moves);
  return sums;
}

/// Adds up the partial sums of the first stage and begins the second.
void startSecondStageOfResults(const HierarchicalExchange &exchange,
                               Partials &partials) {
  Device &device = exchange.device;
  std::vector<const std::byte *> ofOwners;
  for (int32_t owner : exchange.ownGroup()) {
    auto index = static_cast<size_t>(owner);
    ofOwners.push_back(
        partials.receivedRows[index] +
        resultBytes(device, partials.receivedBlocks[index].size));
  }
  std::vector<int64_t> counts = exchange.countsOf([&](int64_t peer) {
    return exchange.relayToSamples(exchange.rank, peer);
  });
  partials.relayRequest =
      startValues(device, MessageKind::ResultsSecondHop,
                  addUpAll(exchange, std::move(ofOwners), counts), counts,
                  exchange.countsOf([&](int64_t peer) {
                    return exchange.relayToSamples(peer, exchange.rank);
                  }));
}

} // namespace

void startRelayedResults(Device &device, const Routed &routed,
                         Partials &partials) {
  HierarchicalExchange exchange(device, routed);
  std::vector<Block> receive = makeBatchBlocks(device, routed);
  partials.request =
      startValues(device, MessageKind::Results, packResults(exchange, partials),
                  exchange.countsOf([&](int64_t peer) {
                    return firstStageTo(exchange, partials, peer);
                  }),
                  exchange.countsOf([&](int64_t peer) {
                    return receive[static_cast<size_t>(peer)].size +
                           exchange.ownerToRelay(peer, exchange.rank);
                  }));
}

void receiveRelayedResults(Device &device, const Routed &routed,
                           Partials &partials) {
  HierarchicalExchange exchange(device, routed);
  partials.receivedRows = waitForAll(*partials.request);
  startSecondStageOfResults(exchange, partials);
  std::vector<const std::byte *> sums = waitForAll(*partials.relayRequest);
  for (int32_t relay :
       exchange.ranksServedBy(exchange.rank)) // one in each group
    partials.relayedRows.push_back(sums[static_cast<size_t>(relay)]);
}

} // namespace neuroshard::runtime
