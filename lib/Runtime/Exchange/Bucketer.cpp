//===- Bucketer.cpp - Checks ids and sorts them by owner ------------------===//
//
// A bucket with all ids of its feature is checked and copied in one pass; the
// ids of other buckets are counted first.
//
//===----------------------------------------------------------------------===//

#include "Bucketer.h"
#include "BadIds.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::runtime {

namespace {
constexpr int64_t kIdsPerChunk = 1 << 14;
} // namespace

Bucketer::Bucketer(Device &device, const JaggedInput &input, Routed &routed)
    : device(device), spec(device.manifest().exchanges[routed.exchange]),
      layout(device.layout(routed.exchange)), input(input), routed(routed),
      chunksOfLookup(spec.lookups.size()), firstIds(layout.buckets.size()) {}

void Bucketer::run() {
  makeChunks();
  countIds();
  placePayloads();
  if (device.numDevices() == 1)
    keepStreams();
  fill();
}

const ExchangeLookup &Bucketer::lookupOf(int32_t bucket) const {
  return spec.lookups[layout.buckets[bucket].lookup];
}

Range Bucketer::idsOf(const Chunk &chunk) const {
  int64_t first = spec.lookups[chunk.lookup].feature * routed.batch;
  return {input.offsets[first + chunk.bags.begin],
          input.offsets[first + chunk.bags.end]};
}

void Bucketer::makeChunks() {
  for (size_t k = 0; k < spec.lookups.size(); ++k) {
    int64_t numChunks =
        std::clamp<int64_t>(routed.lookups[k].numIds / kIdsPerChunk, 1,
                            std::max<int64_t>(routed.batch, 1));
    chunksOfLookup[k] = static_cast<int32_t>(numChunks);
    for (int64_t i = 0; i < numChunks; ++i)
      chunks.push_back(
          {static_cast<int32_t>(k),
           {routed.batch * i / numChunks, routed.batch * (i + 1) / numChunks},
           static_cast<int32_t>(i)});
  }
  badIds.resize(chunks.size());
}

void Bucketer::countIds() {
  for (size_t i = 0; i < layout.buckets.size(); ++i)
    firstIds[i].resize(
        static_cast<size_t>(chunksOfLookup[layout.buckets[i].lookup]) + 1);
  auto count = [&](int64_t i) {
    spec.idBytes() == 4 ? countChunk<int32_t>(static_cast<size_t>(i))
                        : countChunk<int64_t>(static_cast<size_t>(i));
  };
  bool allWhole =
      std::all_of(layout.buckets.begin(), layout.buckets.end(),
                  [](const BucketLayout &bucket) { return bucket.whole; });
  if (allWhole) // counts are known: not worth waking threads
    for (size_t i = 0; i < chunks.size(); ++i)
      count(static_cast<int64_t>(i));
  else
    device.threads.parallelFor(static_cast<int64_t>(chunks.size()), count);
  throwBadId();
  for (size_t i = 0; i < layout.buckets.size(); ++i) {
    std::vector<int64_t> &first = firstIds[i];
    for (size_t c = 1; c < first.size(); ++c)
      first[c] += first[c - 1];
    routed.buckets[i].numIds = first.back();
    const ExchangeLookup &lookup = lookupOf(static_cast<int32_t>(i));
    if (!layout.buckets[i].whole && (!lookup.pooled() || lookup.weighted))
      routed.buckets[i].positions = device.buffers->acquireArray<int64_t>(
          BufferKind::Places, first.back());
  }
}

/// Sets firstIds[bucket][chunk + 1] to the chunk's ids in the bucket.
template <typename Id> void Bucketer::countChunk(size_t index) {
  const Chunk &chunk = chunks[index];
  Range range = idsOf(chunk);
  const Id *ids = static_cast<const Id *>(input.ids);
  const ExchangeLookup &lookup = spec.lookups[chunk.lookup];
  bool checked = false;
  for (int32_t bucket : layout.bucketsOfLookup[chunk.lookup]) {
    int64_t &count = firstIds[bucket][static_cast<size_t>(chunk.number) + 1];
    if (layout.buckets[bucket].whole) { // checked when it is filled
      count = range.size();
      continue;
    }
    if (!checked) {
      Id last = lastRowOf<Id>(device.manifest().tables[lookup.table].rows);
      for (int64_t j = range.begin; j < range.end; ++j)
        if (outOfRange(ids[j], last) < 0) {
          badIds[index].position = j;
          return;
        }
      checked = true;
    }
    Range rows = layout.buckets[bucket].rows;
    int64_t padding = lookup.dropsPadding() ? *lookup.paddingIdx : -1;
    int64_t found = 0;
    for (int64_t j = range.begin; j < range.end; ++j) {
      int64_t id = ids[j];
      found += id >= rows.begin && id < rows.end && id != padding;
    }
    count = found;
  }
}

void Bucketer::throwBadId() {
  for (size_t i = 0; i < chunks.size(); ++i)
    if (badIds[i].position >= 0)
      throwBadIdAt(badIds[i].position, spec, chunks[i].lookup, input,
                   device.manifest(), routed.batch);
}

void Bucketer::placePayloads() {
  int64_t totalBytes = 0;
  for (const StreamSet &set : layout.owners) {
    ownerLayouts.emplace_back(set, routed.batch, spec.idBytes());
    std::vector<int64_t> counts;
    for (const StreamLayout &stream : set.streams)
      counts.push_back(routed.buckets[stream.bucket].numIds);
    ownerLayouts.back().placeIds(counts);
    payloadBytes.push_back(ownerLayouts.back().bytes());
    totalBytes += payloadBytes.back();
  }
  payloads = device.buffers->acquire(BufferKind::SentIds, totalBytes);
  std::byte *memory = payloads.get();
  for (size_t i = 0; i < layout.owners.size(); ++i) {
    placePayload(layout.owners[i], memory, ownerLayouts[i]);
    ownerPayloads.push_back(memory);
    memory += payloadBytes[i];
  }
  if (!layout.hasReplicated)
    return;
  const StreamSet &local = layout.locals[device.rank()];
  localLayout.emplace_back(local, routed.batch, spec.idBytes());
  std::vector<int64_t> counts;
  for (const StreamLayout &stream : local.streams)
    counts.push_back(routed.buckets[stream.bucket].numIds);
  localLayout[0].placeIds(counts);
  routed.localPayloadBytes = localLayout[0].bytes();
  routed.localPayload =
      device.buffers->acquire(BufferKind::SentIds, routed.localPayloadBytes);
  placePayload(local, routed.localPayload.get(), localLayout[0]);
}

/// On a single device kernels read the payload in place: nothing is received.
void Bucketer::keepStreams() {
  const StreamSet &set = layout.owners[0];
  ReceivedSet &owned = routed.owned;
  owned.firstBagOfPeer = {0, routed.batch};
  owned.streams.resize(set.streams.size());
  Buffer storage = device.buffers->acquireArray<int64_t>(
      BufferKind::ReceivedIds,
      static_cast<int64_t>(set.streams.size()) * (routed.batch + 1));
  keptOffsets = as<int64_t>(storage);
  owned.storage.push_back(std::move(storage));
  for (size_t i = 0; i < set.streams.size(); ++i) {
    ReceivedStream &stream = owned.streams[i];
    Target target = targetOf({0, static_cast<int32_t>(i)});
    stream.ids = target.ids;
    if (set.streams[i].weighted)
      stream.weights = target.weights;
    stream.firstIdOfPeer = {0, routed.buckets[set.streams[i].bucket].numIds};
    if (!set.streams[i].pooled)
      continue;
    stream.offsets = target.offsets;
    target.offsets[routed.batch] = stream.numIds();
  }
}

/// Writes the counts of unpooled streams.
void Bucketer::placePayload(const StreamSet &set, std::byte *memory,
                            const IdPayload &payload) {
  for (size_t i = 0; i < set.streams.size(); ++i)
    if (!set.streams[i].pooled)
      *payload.count(memory, i) = routed.buckets[set.streams[i].bucket].numIds;
}

void Bucketer::fill() {
  for (size_t k = 0; k < spec.lookups.size(); ++k)
    if (spec.lookups[k].pooling == Pooling::Mean)
      routed.lookups[k].bagCounts =
          device.buffers->acquireArray<float>(BufferKind::Places, routed.batch);
  device.threads.parallelFor(
      static_cast<int64_t>(chunks.size()),
      [&](int64_t i) { fillChunk(static_cast<size_t>(i)); });
  throwBadId();
}

void Bucketer::fillChunk(size_t index) {
  const Chunk &chunk = chunks[index];
  if (spec.lookups[chunk.lookup].pooling == Pooling::Mean)
    countBags(chunk);
  for (int32_t bucket : layout.bucketsOfLookup[chunk.lookup]) {
    spec.idBytes() == 4 ? fillBucket<int32_t>(index, bucket)
                        : fillBucket<int64_t>(index, bucket);
    copyToOthers(chunk, bucket);
  }
}

/// A mean divides by the ids of the whole bag, wherever their rows live.
void Bucketer::countBags(const Chunk &chunk) {
  const ExchangeLookup &lookup = spec.lookups[chunk.lookup];
  const int64_t *offsets = input.offsets + lookup.feature * routed.batch;
  float *counts = as<float>(routed.lookups[chunk.lookup].bagCounts);
  for (int64_t b = chunk.bags.begin; b < chunk.bags.end; ++b) {
    int64_t count = offsets[b + 1] - offsets[b];
    if (lookup.dropsPadding())
      for (int64_t j = offsets[b]; j < offsets[b + 1]; ++j) {
        int64_t id = spec.idBytes() == 4
                         ? static_cast<const int32_t *>(input.ids)[j]
                         : static_cast<const int64_t *>(input.ids)[j];
        count -= id == *lookup.paddingIdx;
      }
    counts[b] = static_cast<float>(count);
  }
}

Bucketer::Target Bucketer::targetOf(const Destination &destination) const {
  bool local = destination.device == localDestination;
  const IdPayload &payload =
      local ? localLayout[0] : ownerLayouts[destination.device];
  std::byte *memory =
      local ? routed.localPayload.get() : ownerPayloads[destination.device];
  size_t stream = static_cast<size_t>(destination.stream);
  bool kept = keptOffsets && !local;
  return {kept ? nullptr : payload.lengths(memory, stream),
          kept ? keptOffsets + static_cast<int64_t>(stream) * (routed.batch + 1)
               : nullptr,
          payload.ids(memory, stream), payload.weights(memory, stream)};
}

template <typename Id> void Bucketer::fillBucket(size_t index, int32_t bucket) {
  Target target = targetOf(layout.buckets[bucket].destinations[0]);
  if (layout.buckets[bucket].whole)
    fillWhole<Id>(index, bucket, target);
  else
    fillSifted<Id>(chunks[index], bucket, target);
}

template <typename Id>
void Bucketer::fillWhole(size_t index, int32_t bucket, const Target &target) {
  const Chunk &chunk = chunks[index];
  const ExchangeLookup &lookup = lookupOf(bucket);
  Range range = idsOf(chunk);
  const Id *in = static_cast<const Id *>(input.ids) + range.begin;
  int64_t first = firstIds[bucket][static_cast<size_t>(chunk.number)];
  Id *out = reinterpret_cast<Id *>(target.ids) + first;
  Id last = lastRowOf<Id>(device.manifest().tables[lookup.table].rows);
  Id bad = 0;
  for (int64_t j = 0; j < range.size(); ++j) {
    bad |= outOfRange(in[j], last);
    out[j] = in[j];
  }
  if (bad < 0) {
    const Id *wrong = std::find_if(
        in, in + range.size(), [&](Id id) { return outOfRange(id, last) < 0; });
    badIds[index].position = range.begin + (wrong - in);
    return;
  }
  if (lookup.weighted)
    std::copy_n(input.weights + range.begin, range.size(),
                target.weights + first);
  if (!lookup.pooled())
    return;
  const int64_t *from = input.offsets + lookup.feature * routed.batch;
  if (target.offsets)
    for (int64_t b = chunk.bags.begin; b < chunk.bags.end; ++b)
      target.offsets[b] = from[b] - from[0];
  else
    for (int64_t b = chunk.bags.begin; b < chunk.bags.end; ++b)
      target.lengths[b] = static_cast<int32_t>(from[b + 1] - from[b]);
}

template <typename Id>
void Bucketer::fillSifted(const Chunk &chunk, int32_t bucket,
                          const Target &target) {
  const ExchangeLookup &lookup = lookupOf(bucket);
  const int64_t *from = input.offsets + lookup.feature * routed.batch;
  const Id *in = static_cast<const Id *>(input.ids);
  Id *out = reinterpret_cast<Id *>(target.ids);
  auto *positions = as<int64_t>(routed.buckets[bucket].positions);
  Range rows = layout.buckets[bucket].rows;
  int64_t padding = lookup.dropsPadding() ? *lookup.paddingIdx : -1;
  int64_t next = firstIds[bucket][static_cast<size_t>(chunk.number)];
  for (int64_t b = chunk.bags.begin; b < chunk.bags.end; ++b) {
    int64_t begin = next;
    for (int64_t j = from[b]; j < from[b + 1]; ++j) {
      int64_t id = in[j];
      if (id < rows.begin || id >= rows.end || id == padding)
        continue;
      out[next] = static_cast<Id>(id - rows.begin);
      if (lookup.weighted)
        target.weights[next] = input.weights[j];
      if (positions)
        positions[next] = j;
      ++next;
    }
    if (target.offsets && lookup.pooled())
      target.offsets[b] = begin;
    else if (lookup.pooled())
      target.lengths[b] = static_cast<int32_t>(next - begin);
  }
}

void Bucketer::copyToOthers(const Chunk &chunk, int32_t bucket) {
  const std::vector<Destination> &all = layout.buckets[bucket].destinations;
  const ExchangeLookup &lookup = lookupOf(bucket);
  int64_t begin = firstIds[bucket][static_cast<size_t>(chunk.number)];
  auto count = static_cast<size_t>(
      firstIds[bucket][static_cast<size_t>(chunk.number) + 1] - begin);
  Target from = targetOf(all[0]);
  for (size_t i = 1; i < all.size(); ++i) {
    Target to = targetOf(all[i]);
    std::memcpy(to.ids + begin * spec.idBytes(),
                from.ids + begin * spec.idBytes(),
                count * static_cast<size_t>(spec.idBytes()));
    if (lookup.weighted)
      std::memcpy(to.weights + begin, from.weights + begin,
                  count * sizeof(float));
    if (lookup.pooled() && to.lengths)
      std::memcpy(to.lengths + chunk.bags.begin,
                  from.lengths + chunk.bags.begin,
                  static_cast<size_t>(chunk.bags.size()) * sizeof(int32_t));
  }
}

} // namespace neuroshard::runtime
