//===- StepBuffers.cpp - Bytes of the buffers of one step -----------------===//

#include "neuroshard/Artifact/StepBuffers.h"

#include "CopySums.h"
#include "CpuUpdateBuffers.h"
#include "ExchangeCounts.h"
#include "NormCounts.h"
#include "NumberBytes.h"
#include "neuroshard/Artifact/CopyAverages.h"
#include "neuroshard/Artifact/HierarchicalSizes.h"
#include "neuroshard/Artifact/IdHeader.h"
#include "neuroshard/Artifact/RelayPieces.h"
#include "neuroshard/Model/RowLayout.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace neuroshard {
namespace {

constexpr int64_t kLengthBytes = 4;

/// The buffers of one exchange.
class ExchangeBuffers : private ExchangeCounts {
public:
  ExchangeBuffers(const ExchangePlan &plan, size_t exchange,
                  const ExchangeLayout &layout, const StepLoad &load,
                  Engine engine, size_t headerNumbers,
                  std::vector<BufferBytes> &devices)
      : ExchangeCounts(plan, exchange, load.exchanges[exchange]), plan(plan),
        layout(layout), engine(engine), travels(count > 1),
        wire(travels ? plan.wireType : WireType()),
        headerNumbers(headerNumbers), groups(plan),
        replicas(replicaUpdate(plan, exchange, layout)), devices(devices) {
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
          offsetBytes(layout.owners[owner]) + cachePlaceBytes(owner);
      if (travels)
        devices[owner][BufferKind::Headers] +=
            static_cast<int64_t>(count * headerNumbers) * kIndexBytes *
            (relaysHeaders(groups) ? 2 : 1);
    }
    if (!layout.groupIds.empty())
      addRelayedIds();
    if (!layout.relays.empty())
      addRelays();
    if (layout.hasReplicated)
      addReplicated();
    if (spec.weighted)
      addSampleWeights();
  }

private:
  /// Where the rows of shards with a cache lie in it.
  int64_t cachePlaceBytes(size_t owner) const {
    int64_t ids = 0;
    const StreamSet &set = layout.owners[owner];
    for (const EntryLayout &entry : set.entries)
      if (plan.shardOfSlot(owner, entry.slot).hasRowCache())
        ids += idsOfReaders(set, entry);
    return ids * packedIdBytes;
  }

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
      ids += layout.groupIds.empty() ? payloadBytes(set, ranks.begin) : 0;
      gradients += directBytes(set, ranks.begin, wire.gradients);
    }
    for (const StreamSet &group : layout.groupIds)
      ids += payloadBytes(group, ranks.begin);
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
    auto all = static_cast<int64_t>(ranks.size());
    int64_t backward = spec.weighted ? 2 : 1; // the update, and the weights
    for (size_t owner = 0; owner < count; ++owner) {
      BufferBytes &bytes = devices[owner];
      const StreamSet &owned = layout.owners[owner];
      bytes[BufferKind::Partials] += all * stagedResults(owned, ranks.begin);
      bytes[BufferKind::ReceivedGradients] +=
          all * backward * stagedGradients(owned, false, ranks.begin);
      // Gathered gradients travel behind ids, of any size.
      bytes[BufferKind::ReceivedGradients] +=
          all * backward *
          stagedGradients(replicas.gathered.set, true, ranks.begin);
      if (!ranks.contains(owner))
        continue;
      bytes[BufferKind::Partials] +=
          stagedResults(layout.locals[owner], ranks.begin);
      bytes[BufferKind::ReceivedGradients] +=
          backward * stagedGradients(replicas.summed.set, false, ranks.begin);
    }
  }

  static bool isAligned(const StreamSet &set) {
    return std::all_of(
        set.entries.begin(), set.entries.end(), [](const EntryLayout &entry) {
          return entry.cols.size() == paddedColumns(entry.cols.size());
        });
  }

  /// Of an entry, on the samples of one rank.
  int64_t stagedBytes(const StreamSet &set, const EntryLayout &entry,
                      size_t rank) const {
    if (!entry.readers.contains(static_cast<int64_t>(rank)))
      return 0;
    int64_t rows =
        entry.pooled
            ? load.batches[rank]
            : idsOf(set.streams[static_cast<size_t>(entry.stream)], rank);
    return rows * paddedColumns(entry.cols.size()) * kFloatBytes;
  }

  int64_t stagedResults(const StreamSet &set, size_t rank) const {
    int64_t bytes = 0;
    for (const EntryLayout &entry : set.entries)
      if (!isAligned(set) || lookupOf(entry.lookup).pooling == Pooling::Mean)
        bytes += stagedBytes(set, entry, rank);
    return bytes;
  }

  int64_t stagedGradients(const StreamSet &set, bool always,
                          size_t rank) const {
    int64_t bytes = 0;
    for (const EntryLayout &entry : set.entries)
      if (always || !isAligned(set))
        bytes += stagedBytes(set, entry, rank);
    return bytes;
  }

  /// Where the bags of all ranks begin in each pooled stream.
  int64_t offsetBytes(const StreamSet &set) const {
    int64_t offsets = 0;
    for (const StreamLayout &stream : set.streams)
      if (stream.pooled)
        offsets += stream.readers.areAll() ? bags + static_cast<int64_t>(count)
                                           : offsetsOf(stream.readers);
    return offsets * kIndexBytes;
  }

  int64_t offsetsOf(const Readers &readers) const {
    int64_t offsets = 0;
    for (size_t rank = 0; rank < count; ++rank)
      if (readers.contains(static_cast<int64_t>(rank)))
        offsets += load.batches[rank] + 1;
    return offsets;
  }

  /// What each relay hands out of the ids of the ranks with its index.
  void addRelayedIds() {
    for (const DeviceRange &ranks : runs) {
      std::vector<int64_t> bytesOfGroup(layout.groupIds.size());
      for (size_t owner = 0; owner < count; ++owner)
        bytesOfGroup[groupOf(owner)] +=
            payloadBytes(layout.owners[owner], ranks.begin);
      for (size_t relay = 0; relay < count; ++relay) {
        int32_t index = groups.placeOf(static_cast<int64_t>(relay)).index;
        auto served = std::ranges::count_if(
            groups.devicesWithIndex(index), [&](int32_t rank) {
              return ranks.contains(static_cast<size_t>(rank));
            });
        devices[relay][BufferKind::RelayedIds] +=
            served * bytesOfGroup[groupOf(relay)];
      }
    }
  }

  size_t groupOf(size_t device) const {
    return static_cast<size_t>(
        groups.placeOf(static_cast<int64_t>(device)).group);
  }

  void addRelays() {
    HierarchicalSizes results(layout, groups, load.batches, wire.results);
    HierarchicalSizes gradients(layout, groups, load.batches, wire.gradients);
    int64_t resultBytes = valueBytes(wire.results);
    int64_t gradientBytes = valueBytes(wire.gradients);
    auto all = static_cast<int64_t>(count);
    bool areJoined =
        !castsGradients() && relayPieces(gradients.relayBytes()) > 1;
    for (int64_t relay = 0; relay < all; ++relay)
      for (int64_t device = 0; device < all; ++device) {
        BufferBytes &ofRelay = devices[static_cast<size_t>(relay)];
        BufferBytes &ofRank = devices[static_cast<size_t>(device)];
        ofRank[BufferKind::SentResults] +=
            results.ownerToRelay(device, relay) * resultBytes;
        ofRelay[BufferKind::RelayedResults] +=
            results.relayToSamples(relay, device) * resultBytes;
        int64_t toOwner = gradients.ownerToRelay(device, relay) * gradientBytes;
        ofRelay[BufferKind::RelayedGradients] += toOwner;
        if (areJoined)
          ofRank[BufferKind::ReceivedGradients] += toOwner;
        ofRank[BufferKind::Gradients] +=
            gradients.relayToSamples(relay, device) * gradientBytes;
      }
  }

  void addReplicated() {
    const StreamSet &gathered = replicas.gathered.set;
    int64_t received = offsetBytes(gathered);
    for (size_t rank = 0; castsGradients() && rank < count; ++rank)
      received += blockOf(gathered, rank).size * kFloatBytes;
    for (size_t rank = 0; rank < count; ++rank) {
      const StreamSet &set = layout.locals[rank];
      BufferBytes &bytes = devices[rank];
      bytes[BufferKind::SentIds] += payloadBytes(set, rank);
      for (const StreamLayout &stream : set.streams)
        bytes[BufferKind::ReceivedIds] +=
            stream.pooled ? (load.batches[rank] + 1) * kIndexBytes : 0;
      bytes[BufferKind::Partials] += blockOf(set, rank).size * kFloatBytes;
      bytes[BufferKind::Gradients] +=
          payloadBytes(gathered, rank) +
          directBytes(gathered, rank, wire.gradients);
      bytes[BufferKind::ReceivedGradients] += received;
      addRowSums(rank, bytes);
    }
  }

  /// Values of the messages of an all-reduce that a rank packs: the section
  /// that it adds up on each level and, if there are several, its totals for
  /// each peer, and those of a level's peers.
  int64_t reducedValues(const std::vector<ReduceLevel> &levels) const {
    int64_t values = 0;
    for (const ReduceLevel &level : levels) {
      int64_t own = level.ownSection().size();
      values += own;
      if (levels.size() > 1)
        values += static_cast<int64_t>(level.peers.size()) * own;
      if (&level != &levels.front())
        values += level.sums.size();
    }
    return values;
  }

  /// A rank's gradients, their sums by row, these as they are sent, and all
  /// totals.
  void addRowSums(size_t rank, BufferBytes &bytes) const {
    if (replicas.tables.empty())
      return;
    int64_t sums = replicas.numSums;
    WireFormat format = rowSumFormat(wire.gradients);
    bytes[BufferKind::Gradients] +=
        (blockOf(replicas.summed.set, rank).size + sums) * kFloatBytes +
        (format == WireFormat::F32 ? 0 : sums * valueBytes(format)) +
        reducedValues(reduceLevels(groups, static_cast<int32_t>(rank), sums)) *
            valueBytes(format);
    bytes[BufferKind::ReceivedGradients] += sums * kFloatBytes;
    if (engine == Engine::Gpu)
      return;
    for (const RowSums &table : replicas.tables)
      bytes[BufferKind::Sort] +=
          (3 * table.rows + 1) * kIndexBytes +
          (table.weighted ? table.rows * kFloatBytes : 0);
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
          bytes += idsOfReaders(owned, entry) * valueBytes;
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
  DeviceGroups groups;
  ReplicaUpdate replicas;
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
    for (int32_t device : shard.devices)
      if (needsNorms[static_cast<size_t>(shard.table)])
        devices[static_cast<size_t>(device)][BufferKind::Norms] +=
            most.of(shard) * plan.tableOf(shard).normsPerRow() * kFloatBytes;
}

/// How many rows each copy has, what copies send, and what of it is received in
/// another format.
void addCopyMessages(const ExchangePlan &plan, const StepLoad &load,
                     std::vector<BufferBytes> &devices) {
  for (const CopiedRows &copied : copiedRows(plan, load)) {
    auto copies = static_cast<int64_t>(copied.rows.size());
    for (size_t copy = 0; copy < copied.rows.size(); ++copy) {
      BufferBytes &bytes =
          devices[static_cast<size_t>(copied.shard->devices[copy])];
      bytes[BufferKind::Headers] += copies * kIndexBytes;
      bytes[BufferKind::Gradients] +=
          copies * copied.message.bytes(copied.rows[copy]);
      if (copied.message.format != WireFormat::F32)
        bytes[BufferKind::ReceivedGradients] +=
            copied.message.values(copied.allRows) * kFloatBytes;
    }
  }
}

/// Of a step that averages all copies that drift.
void addAverageMessages(const ExchangePlan &plan,
                        std::vector<BufferBytes> &devices) {
  std::vector<int64_t> bytes = averageMessages(plan);
  for (size_t device = 0; device < devices.size(); ++device)
    devices[device][BufferKind::Averages] += bytes[device];
}

} // namespace

/// But for what all exchanges have together.
static std::vector<BufferBytes>
exchangeBuffers(const ExchangePlan &plan,
                const std::vector<ExchangeLayout> &layouts,
                const StepLoad &load, Engine engine) {
  std::vector<BufferBytes> devices(static_cast<size_t>(plan.numDevices));
  size_t headerNumbers = idHeaderNumbers(layouts);
  for (size_t x = 0; x < layouts.size(); ++x)
    ExchangeBuffers(plan, x, layouts[x], load, engine, headerNumbers, devices)
        .add();
  return devices;
}

std::vector<BufferBytes>
lookupBuffers(const ExchangePlan &plan,
              const std::vector<ExchangeLayout> &layouts, const StepLoad &load,
              Engine engine) {
  std::vector<BufferBytes> devices =
      exchangeBuffers(plan, layouts, load, engine);
  for (BufferBytes &bytes : devices)
    bytes.dropBackward();
  return devices;
}

std::vector<BufferBytes> stepBuffers(const ExchangePlan &plan,
                                     const std::vector<ExchangeLayout> &layouts,
                                     const StepLoad &load, Engine engine) {
  std::vector<BufferBytes> devices =
      exchangeBuffers(plan, layouts, load, engine);
  addNormMessages(plan, layouts, load, engine, devices);
  addCopyMessages(plan, load, devices);
  addAverageMessages(plan, devices);
  if (engine == Engine::Gpu)
    addNormSums(plan, layouts, load, devices);
  else
    addCpuUpdateBuffers(plan, layouts, load, devices);
  return devices;
}

} // namespace neuroshard
