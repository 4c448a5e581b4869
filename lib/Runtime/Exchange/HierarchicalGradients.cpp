//===- HierarchicalGradients.cpp - Gradients by relays in groups ----------===//
//
// First hop: what owners get directly, and the gradients of each bag once to
// each group. Second hop: relays hand the columns out to their owners, as they
// have come, so that nothing is rounded twice.
//
//===----------------------------------------------------------------------===//

#include "ABI/Views.h"
#include "HierarchicalAllToAll.h"
#include "HierarchicalSizes.h"
#include "Step/Steps.h"

#include <cstring>

namespace neuroshard::runtime {
namespace {

/// What the first hop takes from `gradients.send`, rank after rank.
std::vector<Values> gradientPartsToSend(const Hops &hops,
                                        const Partials &gradients) {
  const float *direct = as<const float>(gradients.send);
  const float *next = direct + totalFloats(gradients.sendBlocks);
  std::vector<Values> ofGroup;
  for (int32_t relay : hops.homesOf(hops.member)) {
    ofGroup.push_back({next, hops.ofHop(relay, hops.rank)});
    next += ofGroup.back().count;
  }
  std::vector<Values> parts;
  for (int64_t peer = 0; peer < hops.numRanks(); ++peer) {
    int64_t size = gradients.sendBlocks[size_t(peer)].size;
    parts.push_back({direct, size});
    direct += size;
    if (hops.place(peer).member == hops.member)
      parts.push_back(ofGroup[size_t(hops.place(peer).group)]);
  }
  return parts;
}

/// A run of columns that a relay copies from a home's row to an owner's.
struct ColumnCopy {
  int64_t from;
  int64_t to;
  int64_t count;
};

std::vector<ColumnCopy> copiesFor(const RelayLayout &relay, int32_t member) {
  std::vector<ColumnCopy> copies;
  for (const RelaySum &sum : relay.sums)
    for (const RelaySource &source : sum.sources)
      if (source.member == member)
        copies.push_back({sum.column, source.column, sum.size});
  return copies;
}

/// Writes what one owner gets of one home's gradients.
void handOut(const Hops &hops, int32_t owner, int32_t home,
             const std::byte *from, std::byte *to) {
  int64_t bytes = wireBytes(hops.device, 1);
  int64_t width = hops.layout.owners[size_t(owner)].relayedWidth;
  std::vector<ColumnCopy> copies =
      copiesFor(hops.relay, hops.place(owner).member);
  auto copyRows = [&](int64_t begin, int64_t end) {
    for (int64_t bag = begin; bag < end; ++bag)
      for (const ColumnCopy &copy : copies)
        std::memcpy(to + (bag * width + copy.to) * bytes,
                    from + (bag * hops.relay.width + copy.from) * bytes,
                    size_t(copy.count * bytes));
  };
  forRowRanges(hops.device.threads, hops.batches[size_t(home)], width,
               copyRows);
}

/// Waits for the first hop and begins the second.
void startSecondHopOfGradients(const Hops &hops, Partials &gradients) {
  const auto &messages = gradients.request->wait();
  std::vector<int64_t> counts = hops.countsOf(
      [&](int64_t owner) { return hops.ofRelay(owner, hops.rank); });
  int64_t total = 0;
  for (int64_t count : counts)
    total += count;
  Buffer send = hops.device.buffers->acquire(wireBytes(hops.device, total));
  std::byte *to = send.get();
  for (int32_t owner = 0; owner < hops.numRanks(); ++owner) {
    if (!hops.isInOwnGroup(owner))
      continue;
    for (int32_t home : hops.homesOf(hops.member)) {
      int64_t direct = gradients.receivedBlocks[size_t(home)].directSize;
      handOut(hops, owner, home,
              messages[size_t(home)].data() + wireBytes(hops.device, direct),
              to);
      to += wireBytes(hops.device, hops.ofHome(owner, home));
    }
  }
  gradients.relayRequest =
      startValues(hops.device, Phase::GradientsExchange, send, counts,
                  hops.countsOf([&](int64_t peer) {
                    return hops.ofRelay(hops.rank, peer);
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
  Hops hops(device, routed);
  std::vector<Block> receive =
      makeOwnerBlocks(hops.layout.owners[size_t(hops.rank)], routed.owned);
  gradients.request = startValues(
      device, Phase::GradientsExchange,
      encodeAll(device, gradientPartsToSend(hops, gradients)),
      hops.countsOf([&](int64_t peer) {
        return gradients.sendBlocks[size_t(peer)].size +
               hops.ofHop(peer, hops.rank);
      }),
      hops.countsOf([&](int64_t peer) {
        return receive[size_t(peer)].directSize + hops.ofHop(hops.rank, peer);
      }));
}

std::vector<const std::byte *> receiveRelayedGradients(Device &device,
                                                       const Routed &routed,
                                                       Partials &gradients) {
  Hops hops(device, routed);
  startSecondHopOfGradients(hops, gradients);
  const auto &messages = gradients.relayRequest->wait();
  std::vector<const std::byte *> ofHome(size_t(hops.numRanks()));
  for (int32_t relay : hops.members) {
    const std::byte *rows = messages[size_t(relay)].data();
    for (int32_t home : hops.homesOf(hops.place(relay).member)) {
      ofHome[size_t(home)] = rows;
      rows += wireBytes(device, hops.ofHome(hops.rank, home));
    }
  }
  return ofHome;
}

} // namespace neuroshard::runtime
