//===- GradientParts.cpp - Entries of an exchange with gradients ----------===//

#include "GradientParts.h"
#include "Exchange/GradientExchange.h"

#include <algorithm>
#include <utility>

namespace neuroshard::runtime {
namespace {

/// Adds the parts of one exchange. Tables whose row sums the ranks exchange
/// have none.
class ExchangeParts {
public:
  ExchangeParts(const Device &device, const Routed &routed,
                const Partials &gradients, int64_t firstStream,
                std::vector<GradientPart> &parts)
      : device(device), layout(device.gradientLayout(routed)),
        spec(device.manifest().exchanges[routed.exchange]), routed(routed),
        gradients(gradients), firstStream(firstStream), parts(parts) {}

  void add() {
    // A slot's lookups come in the order of the exchange.
    const StreamSet &owned = layout.owners[device.rank()];
    const StreamSet &local = gradients.replicas.gathered.set;
    std::vector<std::pair<const StreamSet *, size_t>> entries;
    for (const StreamSet *set : {&owned, &local})
      for (size_t e = 0; e < set->entries.size(); ++e)
        entries.push_back({set, e});
    std::stable_sort(entries.begin(), entries.end(), [](auto a, auto b) {
      return a.first->entries[a.second].lookup <
             b.first->entries[b.second].lookup;
    });
    for (auto [set, entry] : entries)
      if (set == &owned)
        addEntry(owned, entry, firstStream, routed.owned, gradients.gradients);
      else
        addEntry(local, entry,
                 firstStream + static_cast<int64_t>(owned.streams.size()),
                 gradients.gathered, gradients.gatheredGradients);
  }

private:
  void addEntry(const StreamSet &set, size_t index, int64_t firstOfSet,
                const ReceivedSet &received,
                const std::vector<ReceivedBlock> &blocks) {
    const EntryLayout &entry = set.entries[index];
    // A table without an optimizer is only read.
    const Shard &shard = device.slots[static_cast<size_t>(entry.slot)];
    if (!shard.table().trained() || device.rates.isFrozen(shard.spec().table))
      return;
    auto stream = static_cast<size_t>(entry.stream);
    std::optional<int64_t> padding = spec.lookups[entry.lookup].paddingIdx;
    if (padding)
      *padding -= set.streams[stream].rows.begin;
    // Entries of one stream may have other readers, whose ids are sorted apart.
    int64_t number =
        entry.readers.areAll() ? firstOfSet + entry.stream : -1 - entry.kernel;
    for (size_t peer = 0; peer < blocks.size(); ++peer) {
      if (!entry.readers.contains(static_cast<int64_t>(peer)))
        continue;
      const PeerIds &ids = received.streams[stream][peer];
      GradientPart &part = parts.emplace_back(GradientPart{
          entry.kernel, number, ids, gradientsOf(ids, blocks[peer], index),
          blocks[peer].block.stride[index], padding});
      if (const std::byte *places = received.placesOf(index, peer)) {
        part.places = places;
        part.rows = routed.rows.get();
      }
    }
  }

  const Device &device;
  const ExchangeLayout &layout;
  const ExchangeSpec &spec;
  const Routed &routed;
  const Partials &gradients;
  int64_t firstStream;
  std::vector<GradientPart> &parts;
};

} // namespace

const float *gradientsOf(const PeerIds &ids, const ReceivedBlock &block,
                         size_t entry) {
  return ids.numIds > 0 ? block.at(entry) : nullptr;
}

std::vector<GradientPart>
makeGradientParts(Device &device, std::span<Routed *const> routed,
                  std::span<Partials *const> gradients) {
  std::vector<GradientPart> parts;
  int64_t firstStream = 0;
  for (size_t i = 0; i < routed.size(); ++i) {
    receiveGradients(device, *routed[i], *gradients[i]);
    ExchangeParts(device, *routed[i], *gradients[i], firstStream, parts).add();
    const ExchangeLayout &layout = device.layout(routed[i]->exchange);
    for (const auto *sets : {&layout.owners, &layout.locals})
      firstStream +=
          static_cast<int64_t>((*sets)[device.rank()].streams.size());
  }
  return parts;
}

} // namespace neuroshard::runtime
