//===- FetchRows.cpp - Rows of lower tiers for a batch --------------------===//

#include "FetchRows.h"
#include "Exchange/IdExchange.h"

#include <utility>

namespace neuroshard::runtime {

namespace {

/// Calls function(entry, rank, ids) for the ids of entries whose shard has a
/// cache.
template <typename Function>
void forCached(const Device &device, const Routed &routed,
               const Function &function) {
  const StreamSet &set = device.layout(routed.exchange).owners[device.rank()];
  for (size_t e = 0; e < set.entries.size(); ++e) {
    const EntryLayout &entry = set.entries[e];
    if (!device.slots[static_cast<size_t>(entry.slot)].cache())
      continue;
    const std::vector<PeerIds> &ranks =
        routed.owned.streams[static_cast<size_t>(entry.stream)];
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (entry.readers.contains(static_cast<int64_t>(rank)))
        function(e, rank, ranks[rank]);
  }
}

} // namespace

void fetchRows(Device &device, Routed &routed) {
  receiveIds(device, routed);
  if (!device.plan->hasCaches || routed.isFetched)
    return;
  routed.isFetched = true;
  std::erase(device.idsToFetch, &routed);
  PhaseTimer timer(device.figures, Phase::Fetch);
  int64_t bytes = 0, idBytes = device.packedIdBytes(routed.exchange);
  forCached(device, routed, [&](size_t, size_t, const PeerIds &ids) {
    bytes += ids.numIds * idBytes;
  });
  if (bytes == 0)
    return;
  ReceivedSet &owned = routed.owned;
  const StreamSet &set = device.layout(routed.exchange).owners[device.rank()];
  owned.placeMemory = device.buffers->acquire(BufferKind::ReceivedIds, bytes);
  owned.places.assign(
      set.entries.size(),
      std::vector<const std::byte *>(static_cast<size_t>(device.numDevices())));
  std::vector<CachedLookup> lookups;
  std::byte *next = owned.placeMemory.get();
  forCached(device, routed, [&](size_t e, size_t rank, const PeerIds &ids) {
    owned.places[e][rank] = next;
    lookups.push_back({set.entries[e].kernel, ids.ids, ids.numIds, next});
    next += ids.numIds * idBytes;
  });
  routed.rows = device.backend->fetchRows(lookups);
}

void waitForRows(Device &device, Routed &routed) {
  fetchRows(device, routed);
  if (!routed.rows)
    return;
  PhaseTimer timer(device.figures, Phase::Fetch);
  routed.rows->wait();
}

void expectIds(Device &device, Routed &routed) {
  if (!device.plan->hasCaches)
    return;
  if (device.numDevices() == 1)
    fetchRows(device, routed);
  else
    device.idsToFetch.push_back(&routed);
}

void fetchAhead(Device &device) {
  for (Routed *routed : std::exchange(device.idsToFetch, {}))
    fetchRows(device, *routed);
}

} // namespace neuroshard::runtime
