//===- StepBuffersOnGpus.cpp - Buffers of a step of GPU ranks -------------===//

#include "StepBuffersOnGpus.h"

#include "ExchangeBuffers.h"
#include "NormCounts.h"

#include <algorithm>

namespace neuroshard {
namespace {

/// Numbers before those of ids in the header to each rank.
constexpr int64_t kHeaderNumbers = 3;

class GpuExchangeBuffers : private ExchangeBuffers {
public:
  using ExchangeBuffers::ExchangeBuffers;

  void add() {
    addHeaders();
    for (size_t owner = 0; owner < count; ++owner)
      addStarts(owner);
    for (const DeviceRange &ranks : runs) {
      addPlaces(ranks);
      addPairs(ranks);
    }
    if (layout.hasReplicated)
      addCopies();
    if (spec.weighted)
      addSampleWeights();
  }

private:
  void addHeaders() {
    size_t most = 0;
    for (size_t owner = 0; owner < count; ++owner)
      most = std::max(most, layout.owners[owner].streams.size() +
                                layout.locals[owner].streams.size());
    int64_t numbers = kHeaderNumbers + static_cast<int64_t>(most);
    for (BufferBytes &bytes : devices)
      bytes[BufferKind::Headers] += static_cast<int64_t>(count) * numbers *
                                    kIndexBytes * (travels ? 2 : 1);
  }

  /// Numbers of ids by bucket and bag, and the order of the ids in each layer.
  void addPlaces(const DeviceRange &ranks) {
    bool isSifted = false;
    int32_t layers = 1;
    int64_t ids = 0; // every id is in one bucket of the first layer
    for (size_t b = 0; b < layout.buckets.size(); ++b) {
      const BucketLayout &bucket = layout.buckets[b];
      int64_t rows =
          plan.tables[static_cast<size_t>(lookupOf(bucket.lookup).table)].rows;
      isSifted |= bucket.rows != Range{0, rows};
      layers = std::max(layers, bucket.layer + 1);
      ids += bucket.layer == 0 ? load.ids(ranks.begin, b) : 0;
    }
    auto buckets = static_cast<int64_t>(layout.buckets.size());
    for (size_t rank = ranks.begin; rank < ranks.end; ++rank)
      devices[rank][BufferKind::Places] +=
          kIndexBytes * (buckets * (load.batches[ranks.begin] + 1) +
                         (isSifted ? layers * ids : 0));
  }

  /// Where the ids of each bag, or stream, begin.
  void addStarts(size_t owner) {
    int64_t starts = 1;
    for (const StreamSet *set : {&layout.owners[owner], &layout.locals[owner]})
      for (const StreamLayout &stream : set->streams)
        starts += stream.pooled ? bags : static_cast<int64_t>(count);
    devices[owner][BufferKind::ReceivedIds] += starts * kIndexBytes;
  }

  /// What each owner has for all of these ranks, and each of them for all
  /// owners.
  void addPairs(const DeviceRange &ranks) {
    auto alike = static_cast<int64_t>(ranks.size());
    int64_t allIds = 0, allValues = 0;
    for (size_t owner = 0; owner < count; ++owner) {
      int64_t ids = unpackedIdBytes(layout.owners[owner], ranks.begin) +
                    unpackedIdBytes(layout.locals[owner], ranks.begin);
      int64_t values = paddedValues(layout.owners[owner], ranks.begin);
      addToOwner(devices[owner], alike * ids, alike * values);
      allIds += ids;
      allValues += values;
    }
    for (size_t rank = ranks.begin; rank < ranks.end; ++rank)
      addToRank(devices[rank], allIds, allValues);
  }

  void addToOwner(BufferBytes &bytes, int64_t ids, int64_t values) const {
    bytes[BufferKind::Partials] += values * kFloatBytes;
    if (!travels)
      return;
    bytes[BufferKind::ReceivedIds] += ids;
    bytes[BufferKind::ReceivedGradients] += values * (wire + castBytes());
    bytes[BufferKind::SentResults] += values * (isCast ? wire : 0);
  }

  void addToRank(BufferBytes &bytes, int64_t ids, int64_t values) const {
    bytes[BufferKind::SentIds] += ids;
    bytes[BufferKind::Gradients] += values * kFloatBytes;
    if (!travels)
      return;
    bytes[BufferKind::ReceivedResults] += values * wire;
    bytes[BufferKind::SentGradients] += values * (isCast ? wire : 0);
  }

  /// Results and gradients of replicated tables; those of the rank with most
  /// are as many as each sends.
  void addCopies() {
    int64_t most = 0;
    for (size_t rank = 0; rank < count; ++rank) {
      int64_t values = paddedValues(layout.locals[rank], rank);
      most = std::max(most, values);
      devices[rank][BufferKind::Partials] += values * kFloatBytes;
      devices[rank][BufferKind::Gradients] += values * kFloatBytes;
    }
    for (size_t rank = 0; travels && rank < count; ++rank) {
      devices[rank][BufferKind::SentGradients] += most * wire;
      devices[rank][BufferKind::ReceivedGradients] +=
          most * static_cast<int64_t>(count) * (wire + castBytes());
    }
  }

  /// A value of each id and entry goes back to the rank of the sample.
  void addSampleWeights() {
    auto add = [&](size_t device, int64_t values) {
      devices[device][BufferKind::SampleWeights] += values * kFloatBytes;
    };
    for (const DeviceRange &ranks : runs) {
      int64_t all = 0;
      for (size_t owner = 0; owner < count; ++owner) {
        int64_t values = valuesOf(layout.owners[owner], ranks.begin);
        add(owner, static_cast<int64_t>(ranks.size()) * values);
        all += values;
      }
      for (size_t rank = ranks.begin; travels && rank < ranks.end; ++rank)
        add(rank, all);
    }
    for (size_t rank = 0; rank < count; ++rank)
      add(rank, (travels ? 2 : 1) * valuesOf(layout.locals[rank], rank));
  }

  int64_t valuesOf(const StreamSet &set, size_t rank) const {
    int64_t values = 0;
    for (const EntryLayout &entry : set.entries)
      values += idsOf(set.streams[static_cast<size_t>(entry.stream)], rank);
    return values;
  }

  /// Kernels read gradients in f32.
  int64_t castBytes() const { return isCast ? kFloatBytes : 0; }
};

/// Messages of norms, and the sums.
void addGpuNorms(const ExchangePlan &plan,
                 const std::vector<ExchangeLayout> &layouts,
                 const StepLoad &load, std::vector<BufferBytes> &devices) {
  countNorms(plan, layouts, load, Engine::Gpu,
             [&](size_t from, size_t to, int64_t bytes) {
               devices[from][BufferKind::Norms] += bytes;
               if (devices.size() > 1)
                 devices[to][BufferKind::Norms] += bytes;
             });
  MostNorms most(plan, layouts, load);
  for (const std::vector<const ShardSpec *> &shards : shardsWithNorms(plan)) {
    bool areAligned = haveEqualRows(shards);
    for (const ShardSpec *shard : shards)
      devices[static_cast<size_t>(shard->devices.front())][BufferKind::Norms] +=
          kFloatBytes * (areAligned
                             ? most.of(*shard)
                             : load.distinctRows(shard->table, shard->rows));
  }
}

} // namespace

std::vector<BufferBytes>
stepBuffersOnGpus(const ExchangePlan &plan,
                  const std::vector<ExchangeLayout> &layouts,
                  const StepLoad &load) {
  std::vector<BufferBytes> devices(static_cast<size_t>(plan.numDevices));
  for (size_t x = 0; x < layouts.size(); ++x)
    GpuExchangeBuffers(plan, x, layouts[x], load, devices).add();
  addGpuNorms(plan, layouts, load, devices);
  return devices;
}

} // namespace neuroshard
