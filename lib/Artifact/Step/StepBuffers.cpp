//===- StepBuffers.cpp - Bytes of the buffers of one step -----------------===//

#include "neuroshard/Artifact/StepBuffers.h"

#include "ExchangeBuffers.h"
#include "NormCounts.h"
#include "StepBuffersOnGpus.h"
#include "neuroshard/Artifact/HierarchicalSizes.h"
#include "neuroshard/Artifact/IdHeader.h"
#include "neuroshard/Model/RowLayout.h"

#include <map>
#include <tuple>

namespace neuroshard {
namespace {

/// Grouping ids by row: keys and the same once more, distinct rows, where the
/// ids of each begin, and the order in 4 bytes.
constexpr int64_t rowSortBytes(int64_t ids) {
  return ids * (4 * kIndexBytes + 4) + kIndexBytes;
}

/// The buffers of one exchange in the runtime on CPUs.
class CpuExchangeBuffers : private ExchangeBuffers {
public:
  CpuExchangeBuffers(const ExchangePlan &plan, size_t exchange,
                     const ExchangeLayout &layout, const StepLoad &load,
                     size_t headerNumbers, std::vector<BufferBytes> &devices)
      : ExchangeBuffers(plan, exchange, layout, load, devices),
        headerNumbers(headerNumbers) {}

  void add() {
    for (const DeviceRange &ranks : runs) {
      addPlaces(ranks);
      addPairs(ranks);
    }
    for (size_t owner = 0; owner < count; ++owner) {
      devices[owner][BufferKind::ReceivedIds] +=
          offsetBytes(layout.owners[owner]);
      if (travels)
        devices[owner][BufferKind::Headers] +=
            static_cast<int64_t>(count * headerNumbers) * kIndexBytes;
    }
    if (!layout.relays.empty())
      addRelays();
    if (layout.hasReplicated)
      addReplicated();
    if (spec.weighted)
      addSampleWeights();
  }

private:
  /// Buckets of some rows note which ids they have taken, unless bags of
  /// results alone are asked for; means count the ids of each bag.
  void addPlaces(const DeviceRange &ranks) {
    int64_t bytes = 0;
    for (size_t b = 0; b < layout.buckets.size(); ++b) {
      const BucketLayout &bucket = layout.buckets[b];
      const ExchangeLookup &lookup = lookupOf(bucket.lookup);
      if (!bucket.whole && (!lookup.pooled() || lookup.weighted))
        bytes += load.ids(ranks.begin, b) * kIndexBytes;
    }
    for (const ExchangeLookup &lookup : spec.lookups)
      if (lookup.pooling == Pooling::Mean)
        bytes += load.batches[ranks.begin] * kFloatBytes;
    for (size_t rank = ranks.begin; rank < ranks.end; ++rank)
      devices[rank][BufferKind::Places] += bytes;
  }

  /// What each owner has for all of these ranks, and each of them for all
  /// owners.
  void addPairs(const DeviceRange &ranks) {
    int64_t ids = 0, direct = 0;
    for (size_t owner = 0; owner < count; ++owner) {
      const StreamSet &set = layout.owners[owner];
      Block block = blockOf(set, ranks.begin);
      addToOwner(devices[owner],
                 static_cast<int64_t>(ranks.size()) * block.size);
      ids += payloadBytes(set, ranks.begin);
      direct += block.directSize;
    }
    for (size_t rank = ranks.begin; rank < ranks.end; ++rank)
      addToRank(devices[rank], ids, direct);
  }

  void addToOwner(BufferBytes &bytes, int64_t values) const {
    bytes[BufferKind::Partials] += values * kFloatBytes;
    if (!travels)
      return;
    if (isCast)
      bytes[BufferKind::ReceivedGradients] += values * kFloatBytes;
    if (isCast || !layout.relays.empty())
      bytes[BufferKind::SentResults] += values * wire;
  }

  void addToRank(BufferBytes &bytes, int64_t ids, int64_t direct) const {
    bytes[BufferKind::SentIds] += ids;
    bytes[BufferKind::Gradients] += direct * sentBytes();
  }

  /// Where the bags of all ranks begin in each pooled stream.
  int64_t offsetBytes(const StreamSet &set) const {
    int64_t offsets = 0;
    for (const StreamLayout &stream : set.streams)
      offsets += stream.pooled ? bags + static_cast<int64_t>(count) : 0;
    return offsets * kIndexBytes;
  }

  void addRelays() {
    DeviceGroups groups(plan);
    HierarchicalSizes sizes(layout, groups, load.batches);
    auto all = static_cast<int64_t>(count);
    for (int64_t relay = 0; relay < all; ++relay)
      for (int64_t device = 0; device < all; ++device) {
        BufferBytes &ofRelay = devices[static_cast<size_t>(relay)];
        BufferBytes &ofRank = devices[static_cast<size_t>(device)];
        int64_t across = sizes.relayToSamples(relay, device) * wire;
        ofRelay[BufferKind::RelayedResults] += across;
        ofRelay[BufferKind::RelayedGradients] +=
            sizes.ownerToRelay(device, relay) * wire;
        ofRank[BufferKind::Gradients] += across;
      }
  }

  /// Every rank gathers the ids and gradients of all.
  void addReplicated() {
    int64_t gathered = offsetBytes(layout.locals.front());
    for (size_t rank = 0; isCast && rank < count; ++rank)
      gathered += blockOf(layout.locals[rank], rank).size * kFloatBytes;
    for (size_t rank = 0; rank < count; ++rank) {
      const StreamSet &set = layout.locals[rank];
      BufferBytes &bytes = devices[rank];
      int64_t ids = payloadBytes(set, rank), values = blockOf(set, rank).size;
      bytes[BufferKind::SentIds] += ids;
      for (const StreamLayout &stream : set.streams)
        bytes[BufferKind::ReceivedIds] +=
            stream.pooled ? (load.batches[rank] + 1) * kIndexBytes : 0;
      bytes[BufferKind::Partials] += values * kFloatBytes;
      bytes[BufferKind::Gradients] += ids + values * wire;
      bytes[BufferKind::ReceivedGradients] += gathered;
    }
  }

  /// A value, and the place of its gradient, of each id.
  void addSampleWeights() {
    constexpr int64_t kValueBytes = kFloatBytes + kIndexBytes;
    for (size_t owner = 0; owner < count; ++owner) {
      int64_t &bytes = devices[owner][BufferKind::SampleWeights];
      const StreamSet &owned = layout.owners[owner];
      for (const EntryLayout &entry : owned.entries)
        if (lookupOf(entry.lookup).weighted)
          bytes += idsOfAll(owned.streams[static_cast<size_t>(entry.stream)]) *
                   kValueBytes;
      const StreamSet &local = layout.locals[owner];
      for (const EntryLayout &entry : local.entries)
        if (lookupOf(entry.lookup).weighted)
          bytes +=
              idsOf(local.streams[static_cast<size_t>(entry.stream)], owner) *
              kValueBytes;
    }
  }

  /// Of a gradient; nothing is rounded that stays on the device.
  int64_t sentBytes() const { return travels ? wire : kFloatBytes; }

  size_t headerNumbers; ///< of a header.
};

/// The buffers of an update in the runtime on CPUs.
class CpuUpdateBuffers {
public:
  CpuUpdateBuffers(const ExchangePlan &plan,
                   const std::vector<ExchangeLayout> &layouts,
                   const StepLoad &load, std::vector<BufferBytes> &devices)
      : plan(plan), layouts(layouts), load(load),
        needsNorms(plan.tablesWithNormExchange()), devices(devices) {
    for (size_t x = 0; x < layouts.size(); ++x)
      counts.emplace_back(plan.exchanges[x], load.exchanges[x]);
  }

  void add() {
    for (size_t device = 0; device < devices.size(); ++device)
      addDevice(device);
    countNorms(plan, layouts, load, Engine::Cpu,
               [&](size_t from, size_t, int64_t bytes) {
                 devices[from][BufferKind::Norms] += bytes;
               });
  }

private:
  /// Exchange, whether of a replicated table, and number of a stream.
  using StreamKey = std::tuple<size_t, bool, int32_t>;
  struct SlotIds {
    std::vector<StreamKey> streams;
    int64_t ids = 0;
    bool isWeighted = false;
  };

  void addDevice(size_t device) {
    const std::vector<int32_t> &shards = plan.bindings[device].slots;
    std::vector<SlotIds> slots(shards.size());
    for (size_t x = 0; x < layouts.size(); ++x) {
      addSources(x, layouts[x].owners[device], false, slots);
      addSources(x, layouts[x].locals[device], true, slots);
    }
    std::map<std::vector<StreamKey>, int64_t> sorts;
    for (size_t s = 0; s < slots.size(); ++s) {
      const SlotIds &slot = slots[s];
      if (slot.ids == 0)
        continue;
      sorts[slot.streams] = slot.ids;
      addSlot(plan.shards[static_cast<size_t>(shards[s])], slot,
              devices[device]);
    }
    for (const auto &[streams, ids] : sorts)
      devices[device][BufferKind::Sort] += rowSortBytes(ids);
  }

  void addSources(size_t exchange, const StreamSet &set, bool isReplicated,
                  std::vector<SlotIds> &slots) const {
    const ExchangeSpec &spec = plan.exchanges[exchange];
    for (const EntryLayout &entry : set.entries) {
      const ExchangeLookup &lookup =
          spec.lookups[static_cast<size_t>(entry.lookup)];
      if (!plan.tables[static_cast<size_t>(lookup.table)].trained())
        continue;
      SlotIds &slot = slots[static_cast<size_t>(entry.slot)];
      slot.streams.push_back({exchange, isReplicated, entry.stream});
      slot.ids += counts[exchange].idsOfAll(
          set.streams[static_cast<size_t>(entry.stream)]);
      slot.isWeighted |= lookup.weighted;
    }
  }

  /// Places of gradients by number and by row, and the weights; sums of
  /// gradients and their norms before and after the exchange.
  void addSlot(const ShardSpec &shard, const SlotIds &slot,
               BufferBytes &bytes) const {
    bytes[BufferKind::Sort] +=
        slot.ids * (2 * kIndexBytes + (slot.isWeighted ? kFloatBytes : 0));
    if (needsNorms[static_cast<size_t>(shard.table)])
      bytes[BufferKind::Norms] +=
          load.distinctRows(shard.table, shard.rows) *
          (paddedRowBytes(shard.cols.size(), ElementType::F32) +
           2 * kFloatBytes);
  }

  const ExchangePlan &plan;
  const std::vector<ExchangeLayout> &layouts;
  const StepLoad &load;
  std::vector<bool> needsNorms;
  std::vector<ExchangeCounts> counts;
  std::vector<BufferBytes> &devices;
};

} // namespace

std::vector<BufferBytes> stepBuffers(const ExchangePlan &plan,
                                     const std::vector<ExchangeLayout> &layouts,
                                     const StepLoad &load, Engine engine) {
  if (engine == Engine::Gpu)
    return stepBuffersOnGpus(plan, layouts, load);
  std::vector<BufferBytes> devices(static_cast<size_t>(plan.numDevices));
  size_t headerNumbers = idHeaderNumbers(layouts);
  for (size_t x = 0; x < layouts.size(); ++x)
    CpuExchangeBuffers(plan, x, layouts[x], load, headerNumbers, devices).add();
  CpuUpdateBuffers(plan, layouts, load, devices).add();
  return devices;
}

} // namespace neuroshard
