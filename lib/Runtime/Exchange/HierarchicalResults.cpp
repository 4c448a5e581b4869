//===- HierarchicalResults.cpp - Hierarchical all-to-all of results -------===//
//
// First stage: relayed partial sums to the relays of the owner's group, direct
// results to the ranks of the samples. Second stage: one sum from each group to
// the rank of each sample.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "HierarchicalAllToAll.h"
#include "RowViews.h"

#include <cstring>

namespace neuroshard::runtime {
namespace {

/// The values of `partials.send` that the first stage sends, rank after rank.
std::vector<Values> resultsToSend(const HierarchicalExchange &exchange,
                                  const Partials &partials) {
  std::vector<const float *> rows;
  const float *next = as<const float>(partials.send);
  for (const Block &block : partials.sendBlocks) {
    rows.push_back(next);
    next += block.size;
  }
  std::vector<Values> values;
  for (int64_t peer = 0; peer < exchange.numRanks(); ++peer) {
    values.push_back(
        {rows[static_cast<size_t>(peer)],
         partials.sendBlocks[static_cast<size_t>(peer)].directSize});
    if (!exchange.groups.sameGroup(peer, exchange.rank))
      continue;
    for (int32_t sampleRank : exchange.ranksServedBy(peer))
      values.push_back(
          {rows[static_cast<size_t>(sampleRank)] +
               partials.sendBlocks[static_cast<size_t>(sampleRank)].directSize,
           exchange.ofSamples(exchange.rank, sampleRank)});
  }
  return values;
}

/// Adds up bags [begin, end) of one rank; `rows` are the partial sums that the
/// devices of the group have of its bags.
void addUp(const HierarchicalExchange &exchange,
           const std::vector<const float *> &rows, int64_t begin, int64_t end,
           float *out) {
  auto source = [&](const RelaySource &part, int64_t bag) {
    size_t owner = static_cast<size_t>(
        exchange.ownGroup()[static_cast<size_t>(part.index)]);
    return rows[static_cast<size_t>(part.index)] +
           bag * exchange.layout.owners[owner].relayedWidth + part.column;
  };
  for (int64_t bag = begin; bag < end; ++bag)
    for (const RelaySum &sum : exchange.relay.sums) {
      float *to = out + bag * exchange.relay.width + sum.column;
      std::memcpy(to, source(sum.sources[0], bag),
                  static_cast<size_t>(sum.size) * sizeof(float));
      for (size_t i = 1; i < sum.sources.size(); ++i) {
        const float *from = source(sum.sources[i], bag);
        for (int64_t c = 0; c < sum.size; ++c)
          to[c] += from[c];
      }
    }
}

/// The sums that this relay sends, in the wire type and in the order of the
/// receiving ranks. `rows` are per device of the group, each in the order of
/// the groups of the ranks.
Buffer addUpAll(const HierarchicalExchange &exchange,
                std::vector<const float *> rows) {
  Device &device = exchange.device;
  std::vector<int64_t> begins = {0};
  for (int64_t sampleRank = 0; sampleRank < exchange.numRanks(); ++sampleRank)
    begins.push_back(begins.back() +
                     exchange.relayToSamples(exchange.rank, sampleRank));
  Buffer sums = device.buffers->acquireArray<float>(BufferKind::RelayedResults,
                                                    begins.back());
  for (int32_t sampleRank : exchange.ranksServedBy(exchange.rank)) {
    float *out = as<float>(sums) + begins[static_cast<size_t>(sampleRank)];
    forRowRanges(device.threads,
                 exchange.batches[static_cast<size_t>(sampleRank)],
                 exchange.relay.width, [&](int64_t begin, int64_t end) {
                   addUp(exchange, rows, begin, end, out);
                 });
    for (size_t m = 0; m < rows.size(); ++m)
      rows[m] += exchange.ofSamples(exchange.ownGroup()[m], sampleRank);
  }
  return encodeBuffer(device, BufferKind::RelayedResults, sums, begins.back());
}

/// Adds up the partial sums of the first stage and begins the second.
void startSecondStageOfResults(const HierarchicalExchange &exchange,
                               Partials &partials) {
  std::vector<MessageSection> relayed;
  for (int64_t peer = 0; peer < exchange.numRanks(); ++peer)
    relayed.push_back({partials.receivedBlocks[static_cast<size_t>(peer)].size,
                       exchange.ownerToRelay(peer, exchange.rank)});
  Buffer storage;
  std::vector<const float *> rows =
      waitValues(exchange.device, *partials.request, relayed,
                 BufferKind::RelayedResults, storage);
  std::vector<const float *> ofOwners;
  for (int32_t owner : exchange.ownGroup())
    ofOwners.push_back(rows[static_cast<size_t>(owner)]);
  partials.relayRequest =
      startValues(exchange.device, Phase::ResultsExchange,
                  addUpAll(exchange, std::move(ofOwners)),
                  exchange.countsOf([&](int64_t peer) {
                    return exchange.relayToSamples(exchange.rank, peer);
                  }),
                  exchange.countsOf([&](int64_t peer) {
                    return exchange.relayToSamples(peer, exchange.rank);
                  }));
}

} // namespace

void startRelayedResults(Device &device, const Routed &routed,
                         Partials &partials) {
  HierarchicalExchange exchange(device, routed);
  std::vector<Block> receive = makeBatchBlocks(exchange.layout, routed);
  partials.request = startValues(
      device, Phase::ResultsExchange,
      encodeAll(device, BufferKind::SentResults,
                resultsToSend(exchange, partials)),
      exchange.countsOf([&](int64_t peer) {
        return partials.sendBlocks[static_cast<size_t>(peer)].directSize +
               exchange.ownerToRelay(exchange.rank, peer);
      }),
      exchange.countsOf([&](int64_t peer) {
        return receive[static_cast<size_t>(peer)].size +
               exchange.ownerToRelay(peer, exchange.rank);
      }));
}

void receiveRelayedResults(Device &device, const Routed &routed,
                           Partials &partials) {
  HierarchicalExchange exchange(device, routed);
  startSecondStageOfResults(exchange, partials);
  std::vector<MessageSection> direct, sums;
  for (int64_t peer = 0; peer < exchange.numRanks(); ++peer) {
    direct.push_back(
        {0, partials.receivedBlocks[static_cast<size_t>(peer)].size});
    sums.push_back({0, exchange.relayToSamples(peer, exchange.rank)});
  }
  partials.receivedRows =
      waitValues(device, *partials.request, direct, BufferKind::ReceivedResults,
                 partials.receivedStorage);
  std::vector<const float *> rows =
      waitValues(device, *partials.relayRequest, sums,
                 BufferKind::ReceivedResults, partials.relayedStorage);
  for (int32_t relay :
       exchange.ranksServedBy(exchange.rank)) // one in each group
    partials.relayedRows.push_back(rows[static_cast<size_t>(relay)]);
}

} // namespace neuroshard::runtime
