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

/// Bytes by sender and receiver.
class PairTraffic {
public:
  explicit PairTraffic(size_t devices) {
    for (PairBytes *bytes :
         {&traffic.ids, &traffic.results, &traffic.relayedResults,
          &traffic.gradients, &traffic.relayedGradients, &traffic.copies})
      *bytes = zeros(devices);
  }

  void add(PairBytes ExchangeTraffic::*kind, size_t from, size_t to,
           int64_t bytes) {
    (traffic.*kind)[from][to] += bytes;
  }

  ExchangeTraffic traffic;
};

/// Bytes between each device and the others, without a number for each pair.
class DeviceSums {
public:
  explicit DeviceSums(DeviceTraffic &traffic) : traffic(traffic) {}

  void add(PairBytes ExchangeTraffic::*kind, size_t from, size_t to,
           int64_t bytes) {
    if (from == to || kind == &ExchangeTraffic::ids)
      return;
    bool isForward = kind == &ExchangeTraffic::results ||
                     kind == &ExchangeTraffic::relayedResults;
    std::vector<int64_t> &sums = isForward ? traffic.forward : traffic.backward;
    sums[from] += bytes;
    sums[to] += bytes;
  }

private:
  DeviceTraffic &traffic;
};

/// Counts what one exchange sends, by how it is sent, and adds it to `Sums`.
template <typename Sums> class ExchangeBytes {
public:
  ExchangeBytes(const ExchangePlan &plan, const ExchangeSpec &spec,
                const ExchangeLayout &layout, const ExchangeLoad &load,
                Sums &sums)
      : plan(plan), spec(spec), layout(layout), load(load),
        count(load.batches.size()), wire(elementBytes(plan.wireType)),
        likeBefore(count, false), sums(sums) {
    for (size_t rank = 1; rank < count; ++rank)
      likeBefore[rank] = load.batches[rank] == load.batches[rank - 1] &&
                         load.idsOfBucket[rank] == load.idsOfBucket[rank - 1];
  }

  void onCpus() {
    for (size_t owner = 0; owner < count; ++owner)
      addDirect(owner);
    if (!layout.relays.empty())
      addRelayed();
    if (!layout.hasReplicated || count == 1)
      return;
    for (size_t rank = 0; rank < count; ++rank) {
      const StreamSet &set = layout.locals[rank];
      addToAll(rank, payloadBytes(set, rank) + blockOf(set, rank).size * wire);
    }
  }

  void onGpus() {
    int64_t most = 0; // all-gather takes as many bytes of each
    for (size_t owner = 0; owner < count; ++owner) {
      const StreamSet &set = layout.owners[owner];
      int64_t ids = 0, values = 0;
      for (size_t rank = 0; rank < count; ++rank) {
        if (!likeBefore[rank]) {
          ids = unpackedIdBytes(set, rank) +
                unpackedIdBytes(layout.locals[owner], rank);
          values = paddedValues(set, rank) * wire;
        }
        addBothWays(rank, owner, ids, values);
      }
      most = std::max(most, paddedValues(layout.locals[owner], owner) * wire);
    }
    if (layout.hasReplicated && count > 1)
      for (size_t rank = 0; rank < count; ++rank)
        addToAll(rank, most);
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

  /// Ids of the ranks' samples for an owner, and the values for those ids.
  void addDirect(size_t owner) {
    const StreamSet &set = layout.owners[owner];
    int64_t ids = 0, values = 0;
    for (size_t rank = 0; rank < count; ++rank) {
      if (!likeBefore[rank]) {
        ids = payloadBytes(set, rank);
        values = blockOf(set, rank).directSize * wire;
      }
      addBothWays(rank, owner, ids, values);
    }
  }

  void addBothWays(size_t rank, size_t owner, int64_t ids, int64_t values) {
    sums.add(&ExchangeTraffic::ids, rank, owner, ids);
    sums.add(&ExchangeTraffic::results, owner, rank, values);
    sums.add(&ExchangeTraffic::gradients, rank, owner, values);
  }

  void addToAll(size_t rank, int64_t bytes) {
    for (size_t to = 0; to < count; ++to)
      sums.add(&ExchangeTraffic::copies, rank, to, bytes);
  }

  void addRelayed() {
    DeviceGroups groups(plan);
    HierarchicalSizes sizes(layout, groups, load.batches);
    auto devices = static_cast<int64_t>(count);
    for (int64_t device = 0; device < devices; ++device)
      for (int64_t relay = 0; relay < devices; ++relay) {
        auto d = static_cast<size_t>(device), r = static_cast<size_t>(relay);
        int64_t inGroup = sizes.ownerToRelay(device, relay) * wire;
        sums.add(&ExchangeTraffic::results, d, r, inGroup);
        sums.add(&ExchangeTraffic::relayedGradients, r, d, inGroup);
        int64_t across = sizes.relayToSamples(relay, device) * wire;
        sums.add(&ExchangeTraffic::relayedResults, r, d, across);
        sums.add(&ExchangeTraffic::gradients, d, r, across);
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
  Sums &sums;
};

/// Owners of columns of the same rows send each other the norms of their
/// distinct rows.
class NormBytes {
public:
  NormBytes(const ExchangePlan &plan,
            const std::vector<ExchangeLayout> &layouts, const StepLoad &load,
            Engine engine)
      : plan(plan), layouts(layouts), load(load), engine(engine) {}

  /// Calls add(sender, receiver, bytes).
  template <typename Add> void count(const Add &add) {
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
          add(static_cast<size_t>(sender), static_cast<size_t>(receiver),
              rows * static_cast<int64_t>(sizeof(float)));
        }
    }
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

template <typename Sums>
void countExchange(const ExchangePlan &plan,
                   const std::vector<ExchangeLayout> &layouts,
                   const StepLoad &load, Engine engine, size_t exchange,
                   Sums &sums) {
  ExchangeBytes<Sums> bytes(plan, plan.exchanges[exchange], layouts[exchange],
                            load.exchanges[exchange], sums);
  engine == Engine::Gpu ? bytes.onGpus() : bytes.onCpus();
}

} // namespace

StepTraffic stepTraffic(const ExchangePlan &plan,
                        const std::vector<ExchangeLayout> &layouts,
                        const StepLoad &load, Engine engine) {
  auto devices = static_cast<size_t>(plan.numDevices);
  StepTraffic traffic;
  for (size_t x = 0; x < layouts.size(); ++x) {
    PairTraffic pairs(devices);
    countExchange(plan, layouts, load, engine, x, pairs);
    traffic.exchanges.push_back(std::move(pairs.traffic));
  }
  traffic.norms = zeros(devices);
  NormBytes(plan, layouts, load, engine)
      .count([&](size_t from, size_t to, int64_t bytes) {
        traffic.norms[from][to] += bytes;
      });
  return traffic;
}

DeviceTraffic deviceTraffic(const ExchangePlan &plan,
                            const std::vector<ExchangeLayout> &layouts,
                            const StepLoad &load, Engine engine) {
  auto devices = static_cast<size_t>(plan.numDevices);
  DeviceTraffic traffic{std::vector<int64_t>(devices),
                        std::vector<int64_t>(devices)};
  DeviceSums sums(traffic);
  for (size_t x = 0; x < layouts.size(); ++x)
    countExchange(plan, layouts, load, engine, x, sums);
  NormBytes(plan, layouts, load, engine)
      .count([&](size_t from, size_t to, int64_t bytes) {
        if (from == to)
          return;
        traffic.backward[from] += bytes;
        traffic.backward[to] += bytes;
      });
  return traffic;
}

} // namespace neuroshard
