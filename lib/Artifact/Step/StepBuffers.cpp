//===- StepBuffers.cpp - Bytes of the buffers of one step -----------------===//

#include "neuroshard/Artifact/StepBuffers.h"

#include "ExchangeCounts.h"
#include "NormCounts.h"
#include "neuroshard/Artifact/HierarchicalSizes.h"
#include "neuroshard/Artifact/IdHeader.h"
#include "neuroshard/Model/RowLayout.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace neuroshard {
namespace {

constexpr int64_t kFloatBytes = 4, kIndexBytes = 8, kLengthBytes = 4;

/// Grouping ids by row: keys and the same once more, distinct rows, where the
/// ids of each begin, and the order in 4 bytes.
constexpr int64_t rowSortBytes(int64_t ids) {
  return ids * (4 * kIndexBytes + 4) + kIndexBytes;
}

/// The buffers of one exchange.
class ExchangeBuffers : private ExchangeCounts {
public:
  ExchangeBuffers(const ExchangePlan &plan, size_t exchange,
                  const ExchangeLayout &layout, const StepLoad &load,
                  Engine engine, size_t headerNumbers,
                  std::vector<BufferBytes> &devices)
      : ExchangeCounts(plan.exchanges[exchange], load.exchanges[exchange]),
        plan(plan), layout(layout), engine(engine), travels(count > 1),
        wire(travels ? plan.wireType : WireType()),
        headerNumbers(headerNumbers), devices(devices) {
    for (int64_t batch : this->load.batches)
      bags += batch;
  }

  void add() {
    for (const DeviceRange &ranks : runs) {
      addPlaces(ranks);
      addPairs(ranks);
      if (engine == Engine::Gpu)
        addStaged(ranks);
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
  const ExchangeLookup &lookupOf(int32_t index) const {
    return spec.lookups[static_cast<size_t>(index)];
  }

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
    if (engine == Engine::Gpu)
      bytes += packingBytes(load.batches[ranks.begin]);
    for (size_t rank = ranks.begin; rank < ranks.end; ++rank)
      devices[rank][BufferKind::Places] += bytes;
  }

  /// Lengths of the bags of each bucket, and where they begin.
  int64_t packingBytes(int64_t batch) const {
    return static_cast<int64_t>(layout.buckets.size()) *
           (batch * kLengthBytes + (batch + 1) * kIndexBytes);
  }

  /// What each owner has for all of these ranks, and each of them for all
  /// owners.
  void addPairs(const DeviceRange &ranks) {
    int64_t ids = 0, gradients = 0;
    for (size_t owner = 0; owner < count; ++owner) {
      const StreamSet &set = layout.owners[owner];
      addToOwner(set, ranks, devices[owner]);
      ids += payloadBytes(set, ranks.begin);
      gradients += directBytes(set, ranks.begin, wire.gradients);
    }
    for (size_t rank = ranks.begin; rank < ranks.end; ++rank) {
      devices[rank][BufferKind::SentIds] += ids;
      devices[rank][BufferKind::Gradients] += gradients;
    }
  }

  /// But for results that are sent to relays.
  void addToOwner(const StreamSet &set, const DeviceRange &ranks,
                  BufferBytes &bytes) const {
    auto times = static_cast<int64_t>(ranks.size());
    int64_t values = times * blockOf(set, ranks.begin).size;
    bytes[BufferKind::Partials] += values * kFloatBytes;
    if (castsGradients())
      bytes[BufferKind::ReceivedGradients] += values * kFloatBytes;
    if (wire.results != WireFormat::F32 || !layout.relays.empty())
      bytes[BufferKind::SentResults] +=
          times * directBytes(set, ranks.begin, wire.results);
  }

  /// Kernels on GPUs take rows from 16 bytes on, and do not divide: other rows
  /// are staged. At most, as where blocks begin is not looked at.
  void addStaged(const DeviceRange &ranks) {
    for (size_t owner = 0; owner < count; ++owner) {
      addStaged(layout.owners[owner], false, ranks, devices[owner]);
      addStaged(layout.locals[owner], true, ranks, devices[owner]);
    }
  }

  /// `afterIds`: gradients travel behind ids, of any size.
  void addStaged(const StreamSet &set, bool afterIds, const DeviceRange &ranks,
                 BufferBytes &bytes) const {
    bool isAligned = std::all_of(
        set.entries.begin(), set.entries.end(), [](const EntryLayout &entry) {
          return entry.cols.size() == paddedColumns(entry.cols.size());
        });
    int64_t backward = spec.weighted ? 2 : 1; // the update, and the weights
    for (const EntryLayout &entry : set.entries) {
      int64_t rows = entry.pooled
                         ? load.batches[ranks.begin]
                         : idsOf(set.streams[static_cast<size_t>(entry.stream)],
                                 ranks.begin);
      int64_t staged = static_cast<int64_t>(ranks.size()) * rows *
                       paddedColumns(entry.cols.size()) * kFloatBytes;
      if (!isAligned || lookupOf(entry.lookup).pooling == Pooling::Mean)
        bytes[BufferKind::Partials] += staged;
      if (!isAligned || afterIds)
        bytes[BufferKind::ReceivedGradients] += backward * staged;
    }
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
    HierarchicalSizes results(layout, groups, load.batches, wire.results);
    HierarchicalSizes gradients(layout, groups, load.batches, wire.gradients);
    int64_t resultBytes = valueBytes(wire.results);
    int64_t gradientBytes = valueBytes(wire.gradients);
    auto all = static_cast<int64_t>(count);
    for (int64_t relay = 0; relay < all; ++relay)
      for (int64_t device = 0; device < all; ++device) {
        BufferBytes &ofRelay = devices[static_cast<size_t>(relay)];
        BufferBytes &ofRank = devices[static_cast<size_t>(device)];
        ofRank[BufferKind::SentResults] +=
            results.ownerToRelay(device, relay) * resultBytes;
        ofRelay[BufferKind::RelayedResults] +=
            results.relayToSamples(relay, device) * resultBytes;
        ofRelay[BufferKind::RelayedGradients] +=
            gradients.ownerToRelay(device, relay) * gradientBytes;
        ofRank[BufferKind::Gradients] +=
            gradients.relayToSamples(relay, device) * gradientBytes;
      }
  }

  /// Every rank gathers the ids and gradients of all.
  void addReplicated() {
    int64_t gathered = offsetBytes(layout.locals.front());
    for (size_t rank = 0; castsGradients() && rank < count; ++rank)
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
      bytes[BufferKind::Gradients] +=
          ids + directBytes(set, rank, wire.gradients);
      bytes[BufferKind::ReceivedGradients] += gathered;
    }
  }

  /// A value of each id and, on CPUs, the place of its gradient.
  void addSampleWeights() {
    int64_t valueBytes =
        kFloatBytes + (engine == Engine::Cpu ? kIndexBytes : 0);
    for (size_t owner = 0; owner < count; ++owner) {
      int64_t &bytes = devices[owner][BufferKind::SampleWeights];
      const StreamSet &owned = layout.owners[owner];
      for (const EntryLayout &entry : owned.entries)
        if (lookupOf(entry.lookup).weighted)
          bytes += idsOfAll(owned.streams[static_cast<size_t>(entry.stream)]) *
                   valueBytes;
      const StreamSet &local = layout.locals[owner];
      for (const EntryLayout &entry : local.entries)
        if (lookupOf(entry.lookup).weighted)
          bytes +=
              idsOf(local.streams[static_cast<size_t>(entry.stream)], owner) *
              valueBytes;
    }
  }

  bool castsGradients() const { return wire.gradients != WireFormat::F32; }

  const ExchangePlan &plan;
  const ExchangeLayout &layout;
  Engine engine;
  bool travels;         ///< there are other ranks.
  WireType wire;        ///< f32 if nothing travels.
  size_t headerNumbers; ///< of a header.
  int64_t bags = 0;     ///< samples of all ranks.
  std::vector<BufferBytes> &devices;
};

/// Messages of norms.
void addNormMessages(const ExchangePlan &plan,
                     const std::vector<ExchangeLayout> &layouts,
                     const StepLoad &load, Engine engine,
                     std::vector<BufferBytes> &devices) {
  countNorms(plan, layouts, load, engine,
             [&](size_t from, size_t, int64_t bytes) {
               devices[from][BufferKind::Norms] += bytes;
             });
}

/// The sums of the norms of each shard. All else in which GPUs update tables is
/// in UpdateBuffers.h.
void addNormSums(const ExchangePlan &plan,
                 const std::vector<ExchangeLayout> &layouts,
                 const StepLoad &load, std::vector<BufferBytes> &devices) {
  MostNorms most(plan, layouts, load);
  std::vector<bool> needsNorms = plan.tablesWithNormExchange();
  for (const ShardSpec &shard : plan.shards)
    if (needsNorms[static_cast<size_t>(shard.table)])
      devices[static_cast<size_t>(shard.devices.front())][BufferKind::Norms] +=
          most.of(shard) * kFloatBytes;
}

/// The buffers of an update on CPUs.
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
  std::vector<BufferBytes> devices(static_cast<size_t>(plan.numDevices));
  size_t headerNumbers = idHeaderNumbers(layouts);
  for (size_t x = 0; x < layouts.size(); ++x)
    ExchangeBuffers(plan, x, layouts[x], load, engine, headerNumbers, devices)
        .add();
  addNormMessages(plan, layouts, load, engine, devices);
  if (engine == Engine::Gpu)
    addNormSums(plan, layouts, load, devices);
  else
    CpuUpdateBuffers(plan, layouts, load, devices).add();
  return devices;
}

} // namespace neuroshard
