//===- StepTraffic.cpp - Bytes that travel in one step --------------------===//

#include "neuroshard/Artifact/StepTraffic.h"

#include "neuroshard/Artifact/ExchangeSizes.h"
#include "neuroshard/Artifact/HierarchicalSizes.h"
#include "neuroshard/Artifact/IdPayload.h"

#include <algorithm>

namespace neuroshard {
namespace {

PairBytes zeros(size_t devices) {
  return PairBytes(devices, std::vector<int64_t>(devices, 0));
}

/// Of one exchange, by how it is sent.
class ExchangeBytes {
public:
  ExchangeBytes(const ExchangePlan &plan, const ExchangeSpec &spec,
                const ExchangeLayout &layout, const ExchangeLoad &load)
      : plan(plan), spec(spec), layout(layout), load(load),
        count(load.batches.size()), wire(elementBytes(plan.wireType)),
        likeBefore(count, false) {
    for (size_t rank = 1; rank < count; ++rank)
      likeBefore[rank] = load.batches[rank] == load.batches[rank - 1] &&
                         load.idsOfBucket[rank] == load.idsOfBucket[rank - 1];
    for (PairBytes *bytes :
         {&traffic.ids, &traffic.results, &traffic.relayedResults,
          &traffic.gradients, &traffic.relayedGradients, &traffic.copies})
      *bytes = zeros(count);
  }

  ExchangeTraffic onCpus() {
    for (size_t rank = 0; rank < count; ++rank)
      for (size_t owner = 0; owner < count; ++owner)
        addDirect(rank, owner);
    if (!layout.relays.empty())
      addRelayed();
    if (layout.hasReplicated && count > 1)
      for (size_t rank = 0; rank < count; ++rank) {
        const StreamSet &set = layout.locals[rank];
        int64_t bytes =
            payloadBytes(set, rank) + blockOf(set, rank).size * wire;
        std::fill(traffic.copies[rank].begin(), traffic.copies[rank].end(),
                  bytes);
      }
    return std::move(traffic);
  }

  ExchangeTraffic onGpus() {
    int64_t most = 0; // all-gather takes as many bytes of each
    for (size_t rank = 0; rank < count; ++rank) {
      for (size_t owner = 0; owner < count; ++owner) {
        const StreamSet &set = layout.owners[owner];
        traffic.ids[rank][owner] = unpackedIdBytes(set, rank) +
                                   unpackedIdBytes(layout.locals[owner], rank);
        int64_t values = paddedValues(set, rank) * wire;
        traffic.results[owner][rank] = values;
        traffic.gradients[rank][owner] = values;
      }
      most = std::max(most, paddedValues(layout.locals[rank], rank) * wire);
    }
    if (layout.hasReplicated && count > 1)
      traffic.copies = PairBytes(count, std::vector<int64_t>(count, most));
    return std::move(traffic);
  }

private:
  int64_t idsOf(const StreamLayout &stream, size_t rank) const {
    return load.idsOfBucket[rank][static_cast<size_t>(stream.bucket)];
  }

  int64_t payloadBytes(const StreamSet &set, size_t rank) const {
    std::vector<int64_t> ids;
    for (const StreamLayout &stream : set.streams)
      ids.push_back(idsOf(stream, rank));
    IdPayload payload(set, load.batches[rank], spec.idBytes());
    payload.placeIds(ids);
    return payload.bytes();
  }

  Block blockOf(const StreamSet &set, size_t rank) const {
    return makeBlock(set, load.batches[rank], [&](size_t stream) {
      return idsOf(set.streams[stream], rank);
    });
  }

  /// Ids of a rank's samples for an owner, and the values for those ids.
  void addDirect(size_t rank, size_t owner) {
    if (likeBefore[rank]) {
      traffic.ids[rank][owner] = traffic.ids[rank - 1][owner];
      traffic.gradients[rank][owner] = traffic.gradients[rank - 1][owner];
      traffic.results[owner][rank] = traffic.results[owner][rank - 1];
      return;
    }
    const StreamSet &set = layout.owners[owner];
    traffic.ids[rank][owner] = payloadBytes(set, rank);
    int64_t values = blockOf(set, rank).directSize * wire;
    traffic.results[owner][rank] = values;
    traffic.gradients[rank][owner] = values;
  }

  void addRelayed() {
    DeviceGroups groups(plan);
    HierarchicalSizes sizes(layout, groups, load.batches);
    auto devices = static_cast<int64_t>(count);
    for (int64_t device = 0; device < devices; ++device)
      for (int64_t relay = 0; relay < devices; ++relay) {
        auto d = static_cast<size_t>(device), r = static_cast<size_t>(relay);
        int64_t inGroup = sizes.ownerToRelay(device, relay) * wire;
        traffic.results[d][r] += inGroup;
        traffic.relayedGradients[r][d] += inGroup;
        int64_t across = sizes.relayToSamples(relay, device) * wire;
        traffic.relayedResults[r][d] += across;
        traffic.gradients[d][r] += across;
      }
  }

  /// Lengths of 4 bytes for each bag, or the number of ids if not pooled; ids;
  /// weights.
  int64_t unpackedIdBytes(const StreamSet &set, size_t rank) const {
    int64_t bytes = 0;
    for (const StreamLayout &stream : set.streams)
      bytes +=
          4 * (stream.pooled ? load.batches[rank] : 1) +
          idsOf(stream, rank) * (spec.idBytes() + (stream.weighted ? 4 : 0));
    return bytes;
  }

  int64_t paddedValues(const StreamSet &set, size_t rank) const {
    int64_t values = 0;
    for (const EntryLayout &entry : set.entries) {
      const StreamLayout &stream =
          set.streams[static_cast<size_t>(entry.stream)];
      values += (entry.pooled ? load.batches[rank] : idsOf(stream, rank)) *
                paddedColumns(entry.cols.size());
    }
    return values;
  }

  const ExchangePlan &plan;
  const ExchangeSpec &spec;
  const ExchangeLayout &layout;
  const ExchangeLoad &load;
  size_t count;
  int64_t wire;
  /// Ranks that bring as much as the one before them, of which a planner has
  /// many.
  std::vector<bool> likeBefore;
  ExchangeTraffic traffic;
};

/// Owners of columns of the same rows send each other the norms of their
/// distinct rows.
class NormBytes {
public:
  NormBytes(const ExchangePlan &plan,
            const std::vector<ExchangeLayout> &layouts, const StepLoad &load,
            Engine engine)
      : plan(plan), layouts(layouts), load(load), engine(engine) {}

  PairBytes count() {
    PairBytes bytes = zeros(static_cast<size_t>(plan.numDevices));
    std::vector<bool> needsNormExchange = plan.tablesWithNormExchange();
    std::vector<std::vector<const ShardSpec *>> ofTable(plan.tables.size());
    for (const ShardSpec &shard : plan.shards)
      if (needsNormExchange[static_cast<size_t>(shard.table)] &&
          shard.cols.size() < plan.tableOf(shard).dim)
        ofTable[static_cast<size_t>(shard.table)].push_back(&shard);
    for (const std::vector<const ShardSpec *> &shards : ofTable) {
      bool areAligned = engine == Engine::Gpu && areAlike(shards);
      for (const ShardSpec *from : shards)
        for (const ShardSpec *to : shards) {
          int32_t sender = from->devices.front(),
                  receiver = to->devices.front();
          bool staysHere = sender == receiver && engine == Engine::Cpu;
          if (staysHere || !from->rows.overlaps(to->rows))
            continue;
          Range common{std::max(from->rows.begin, to->rows.begin),
                       std::min(from->rows.end, to->rows.end)};
          int64_t rows = areAligned ? mostRows(*from)
                                    : load.distinctRows(from->table, common);
          bytes[static_cast<size_t>(sender)][static_cast<size_t>(receiver)] +=
              rows * static_cast<int64_t>(sizeof(float));
        }
    }
    return bytes;
  }

private:
  /// Ranges of rows are equal or have nothing in common. The engine on GPUs
  /// then sends as many norms as there may be, without waiting for the device.
  static bool areAlike(const std::vector<const ShardSpec *> &shards) {
    for (const ShardSpec *a : shards)
      for (const ShardSpec *b : shards)
        if (a->rows != b->rows && a->rows.overlaps(b->rows))
          return false;
    return true;
  }

  int64_t mostRows(const ShardSpec &shard) const {
    int64_t ids = 0;
    for (size_t x = 0; x < layouts.size(); ++x)
      for (size_t b = 0; b < layouts[x].buckets.size(); ++b) {
        const BucketLayout &bucket = layouts[x].buckets[b];
        int32_t table =
            plan.exchanges[x].lookups[static_cast<size_t>(bucket.lookup)].table;
        if (table == shard.table && bucket.rows == shard.rows)
          for (const std::vector<int64_t> &ofRank :
               load.exchanges[x].idsOfBucket)
            ids += ofRank[b];
      }
    return std::min(ids, shard.rows.size());
  }

  const ExchangePlan &plan;
  const std::vector<ExchangeLayout> &layouts;
  const StepLoad &load;
  Engine engine;
};

} // namespace

StepTraffic stepTraffic(const ExchangePlan &plan,
                        const std::vector<ExchangeLayout> &layouts,
                        const StepLoad &load, Engine engine) {
  StepTraffic traffic;
  for (size_t x = 0; x < layouts.size(); ++x) {
    ExchangeBytes bytes(plan, plan.exchanges[x], layouts[x], load.exchanges[x]);
    traffic.exchanges.push_back(engine == Engine::Gpu ? bytes.onGpus()
                                                      : bytes.onCpus());
  }
  traffic.norms = NormBytes(plan, layouts, load, engine).count();
  return traffic;
}

} // namespace neuroshard
