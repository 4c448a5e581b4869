//===- HierarchicalResults.cpp - Adds partial sums in a group -------------===//
//
// First hop: partial sums to the relays of the own group, and all that goes
// home directly. Second hop: one sum from each group to each home.
//
//===----------------------------------------------------------------------===//

#include "ABI/Views.h"
#include "HierarchicalAllToAll.h"
#include "HierarchicalSizes.h"
#include "Step/Steps.h"

#include <cstring>

namespace neuroshard::runtime {
namespace {

/// What the first hop takes from `partials.send`, rank after rank.
std::vector<Values> resultPartsToSend(const Hops &hops,
                                      const Partials &partials) {
  std::vector<const float *> rows;
  const float *next = as<const float>(partials.send);
  for (const Block &block : partials.sendBlocks) {
    rows.push_back(next);
    next += block.size;
  }
  std::vector<Values> parts;
  for (int64_t peer = 0; peer < hops.numRanks(); ++peer) {
    parts.push_back(
        {rows[size_t(peer)], partials.sendBlocks[size_t(peer)].directSize});
    if (!hops.isInOwnGroup(peer))
      continue;
    for (int32_t home : hops.homesOf(hops.place(peer).member))
      parts.push_back(
          {rows[size_t(home)] + partials.sendBlocks[size_t(home)].directSize,
           hops.ofHome(hops.rank, home)});
  }
  return parts;
}

/// Adds up bags [begin, end) of one home; `rows` are the members' partial sums
/// of its bags.
void addUp(const Hops &hops, const std::vector<const float *> &rows,
           int64_t begin, int64_t end, float *out) {
  auto source = [&](const RelaySource &part, int64_t bag) {
    size_t owner = size_t(hops.members[size_t(part.member)]);
    return rows[size_t(part.member)] +
           bag * hops.layout.owners[owner].relayedWidth + part.column;
  };
  for (int64_t bag = begin; bag < end; ++bag)
    for (const RelaySum &sum : hops.relay.sums) {
      float *to = out + bag * hops.relay.width + sum.column;
      std::memcpy(to, source(sum.sources[0], bag),
                  size_t(sum.size) * sizeof(float));
      for (size_t i = 1; i < sum.sources.size(); ++i) {
        const float *from = source(sum.sources[i], bag);
        for (int64_t c = 0; c < sum.size; ++c)
          to[c] += from[c];
      }
    }
}

/// What this relay sends, encoded, home after home in the order of the ranks.
/// `rows` are per member, home after home in the order of the groups.
Buffer addUpAll(const Hops &hops, std::vector<const float *> rows) {
  Device &device = hops.device;
  std::vector<int64_t> begins = {0};
  for (int64_t home = 0; home < hops.numRanks(); ++home)
    begins.push_back(begins.back() + hops.ofHop(hops.rank, home));
  Buffer sums = device.buffers->acquireArray<float>(begins.back());
  for (int32_t home : hops.homesOf(hops.member)) {
    float *out = as<float>(sums) + begins[size_t(home)];
    forRowRanges(device.threads, hops.batches[size_t(home)], hops.relay.width,
                 [&](int64_t begin, int64_t end) {
                   addUp(hops, rows, begin, end, out);
                 });
    for (size_t m = 0; m < rows.size(); ++m)
      rows[m] += hops.ofHome(hops.members[m], home);
  }
  return encodeBuffer(device, sums, begins.back());
}

/// Adds up what the first hop has brought, and begins the second.
void startSecondHopOfResults(const Hops &hops, Partials &partials) {
  std::vector<MessagePart> relayed;
  for (int64_t peer = 0; peer < hops.numRanks(); ++peer)
    relayed.push_back({partials.receivedBlocks[size_t(peer)].size,
                       hops.ofRelay(peer, hops.rank)});
  Buffer storage;
  std::vector<const float *> rows =
      waitValues(hops.device, *partials.request, relayed, storage);
  std::vector<const float *> ofMembers;
  for (int32_t owner : hops.members)
    ofMembers.push_back(rows[size_t(owner)]);
  partials.relayRequest = startValues(
      hops.device, Phase::ResultsExchange, addUpAll(hops, std::move(ofMembers)),
      hops.countsOf([&](int64_t peer) { return hops.ofHop(hops.rank, peer); }),
      hops.countsOf([&](int64_t peer) { return hops.ofHop(peer, hops.rank); }));
}

} // namespace

void startRelayedResults(Device &device, const Routed &routed,
                         Partials &partials) {
  Hops hops(device, routed);
  std::vector<Block> receive = makeBatchBlocks(hops.layout, routed);
  partials.request = startValues(
      device, Phase::ResultsExchange,
      encodeAll(device, resultPartsToSend(hops, partials)),
      hops.countsOf([&](int64_t peer) {
        return partials.sendBlocks[size_t(peer)].directSize +
               hops.ofRelay(hops.rank, peer);
      }),
      hops.countsOf([&](int64_t peer) {
        return receive[size_t(peer)].size + hops.ofRelay(peer, hops.rank);
      }));
}

void receiveRelayedResults(Device &device, const Routed &routed,
                           Partials &partials) {
  Hops hops(device, routed);
  startSecondHopOfResults(hops, partials);
  std::vector<MessagePart> direct, sums;
  for (int64_t peer = 0; peer < hops.numRanks(); ++peer) {
    direct.push_back({0, partials.receivedBlocks[size_t(peer)].size});
    sums.push_back({0, hops.ofHop(peer, hops.rank)});
  }
  partials.receivedRows =
      waitValues(device, *partials.request, direct, partials.receivedStorage);
  std::vector<const float *> rows =
      waitValues(device, *partials.relayRequest, sums, partials.relayedStorage);
  for (int32_t relay : hops.homesOf(hops.member)) // one in each group
    partials.relayedRows.push_back(rows[size_t(relay)]);
}

} // namespace neuroshard::runtime
