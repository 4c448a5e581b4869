//===- PackIds.cpp - Checks ids and sorts them by owner -------------------===//
//
// A bucket with all ids of its feature is checked and copied in one pass; the
// ids of other buckets are counted first.
//
//===----------------------------------------------------------------------===//

#include "PackIds.h"
#include "BadIds.h"
#include "CheckOffsets.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::runtime {

namespace {
constexpr int64_t kIdsPerChunk = 1 << 14;
} // namespace

CpuIdPacker::CpuIdPacker(const Manifest &manifest, int32_t exchange,
                         const JaggedInput &input, int64_t batch,
                         ThreadPool &threads)
    : manifest(manifest),
      spec(manifest.exchanges[static_cast<size_t>(exchange)]),
      layout(manifest.layouts[static_cast<size_t>(exchange)]), input(input),
      batch(batch), packedBytes(manifest.packedIdBytes(spec)), threads(threads),
      firstIds(layout.buckets.size()) {}

const ExchangeLookup &CpuIdPacker::lookupOf(int32_t bucket) const {
  return spec.lookups[layout.buckets[bucket].lookup];
}

int64_t CpuIdPacker::rowsOf(const ExchangeLookup &lookup) const {
  return manifest.tables[lookup.table].rows;
}

const int64_t *CpuIdPacker::offsetsOf(const ExchangeLookup &lookup) const {
  return input.offsets + lookup.feature * batch;
}

Range CpuIdPacker::idsOf(const Chunk &chunk) const {
  const int64_t *offsets = offsetsOf(spec.lookups[chunk.lookup]);
  return {offsets[chunk.bags.begin], offsets[chunk.bags.end]};
}

IdCounts CpuIdPacker::count() {
  checkOffsets(spec, input);
  makeChunks();
  countBuckets();
  IdCounts counts;
  for (size_t f = 0; f <= spec.features.size(); ++f)
    counts.firstOfFeature.push_back(
        input.offsets[static_cast<int64_t>(f) * batch]);
  for (const std::vector<int64_t> &first : firstIds)
    counts.ofBucket.push_back(first.back());
  return counts;
}

void CpuIdPacker::makeChunks() {
  for (size_t k = 0; k < spec.lookups.size(); ++k) {
    const int64_t *offsets = offsetsOf(spec.lookups[k]);
    int64_t numChunks =
        std::clamp<int64_t>((offsets[batch] - offsets[0]) / kIdsPerChunk, 1,
                            std::max<int64_t>(batch, 1));
    for (int64_t i = 0; i < numChunks; ++i)
      chunks.push_back({static_cast<int32_t>(k),
                        {batch * i / numChunks, batch * (i + 1) / numChunks},
                        static_cast<int32_t>(i)});
    for (int32_t bucket : layout.bucketsOfLookup[k])
      firstIds[bucket].resize(static_cast<size_t>(numChunks) + 1);
  }
}

void CpuIdPacker::countBuckets() {
  auto count = [&](int64_t i) {
    Chunk &chunk = chunks[static_cast<size_t>(i)];
    spec.idBytes() == 4 ? countChunk<int32_t>(chunk)
                        : countChunk<int64_t>(chunk);
  };
  bool allWhole =
      std::all_of(layout.buckets.begin(), layout.buckets.end(),
                  [](const BucketLayout &bucket) { return bucket.whole; });
  if (allWhole) // counts are known: not worth waking threads
    for (size_t i = 0; i < chunks.size(); ++i)
      count(static_cast<int64_t>(i));
  else
    threads.parallelFor(static_cast<int64_t>(chunks.size()), count);
  throwBadId();
  for (std::vector<int64_t> &first : firstIds)
    for (size_t c = 1; c < first.size(); ++c)
      first[c] += first[c - 1];
}

/// Sets firstIds[bucket][chunk + 1] to the chunk's ids in the bucket.
template <typename Id> void CpuIdPacker::countChunk(Chunk &chunk) {
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
      Id last = lastRowOf<Id>(rowsOf(lookup));
      for (int64_t j = range.begin; j < range.end; ++j)
        if (outOfRange(ids[j], last) < 0) {
          chunk.badId = j;
          return;
        }
      checked = true;
    }
    Range rows = layout.buckets[bucket].rows;
    int64_t padding = paddingOf(lookup);
    int64_t found = 0;
    for (int64_t j = range.begin; j < range.end; ++j) {
      int64_t id = ids[j];
      found += id >= rows.begin && id < rows.end && id != padding;
    }
    count = found;
  }
}

void CpuIdPacker::throwBadId() const {
  for (const Chunk &chunk : chunks)
    if (chunk.badId >= 0)
      throwBadIdAt(chunk.badId, spec, chunk.lookup, input, manifest, batch);
}

void CpuIdPacker::pack(const PackTargets &targets) {
  threads.parallelFor(static_cast<int64_t>(chunks.size()), [&](int64_t i) {
    fillChunk(chunks[static_cast<size_t>(i)], targets);
  });
  throwBadId();
}

void CpuIdPacker::fillChunk(Chunk &chunk, const PackTargets &targets) const {
  if (float *counts = targets.bagCounts[static_cast<size_t>(chunk.lookup)])
    countBags(chunk, counts);
  for (int32_t bucket : layout.bucketsOfLookup[chunk.lookup]) {
    if (spec.idBytes() == 4)
      fillBucket<int32_t, int32_t>(chunk, bucket, targets);
    else if (packedBytes == 4)
      fillBucket<int64_t, int32_t>(chunk, bucket, targets);
    else
      fillBucket<int64_t, int64_t>(chunk, bucket, targets);
    copyToOthers(chunk, bucket, targets.ofBucket[static_cast<size_t>(bucket)]);
  }
}

/// A mean divides by the ids of the whole bag, wherever their rows live.
void CpuIdPacker::countBags(const Chunk &chunk, float *counts) const {
  const ExchangeLookup &lookup = spec.lookups[chunk.lookup];
  const int64_t *offsets = offsetsOf(lookup);
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

template <typename Id, typename Packed>
void CpuIdPacker::fillBucket(Chunk &chunk, int32_t bucket,
                             const PackTargets &targets) const {
  auto index = static_cast<size_t>(bucket);
  const IdTarget &target = targets.ofBucket[index][0];
  if (target.offsets && chunk.number == 0)
    target.offsets[0] = 0;
  if (layout.buckets[index].whole)
    fillWhole<Id, Packed>(chunk, bucket, target);
  else
    fillSifted<Id, Packed>(chunk, bucket, target, targets.places[index]);
}

template <typename Id, typename Packed>
void CpuIdPacker::fillWhole(Chunk &chunk, int32_t bucket,
                            const IdTarget &target) const {
  const ExchangeLookup &lookup = lookupOf(bucket);
  Range range = idsOf(chunk);
  const Id *in = static_cast<const Id *>(input.ids) + range.begin;
  int64_t first = firstIds[bucket][static_cast<size_t>(chunk.number)];
  Packed *out = reinterpret_cast<Packed *>(target.ids) + first;
  Id last = lastRowOf<Id>(rowsOf(lookup));
  Id bad = 0;
  for (int64_t j = 0; j < range.size(); ++j) {
    bad |= outOfRange(in[j], last);
    out[j] = static_cast<Packed>(in[j]);
  }
  if (bad < 0) {
    const Id *wrong = std::find_if(
        in, in + range.size(), [&](Id id) { return outOfRange(id, last) < 0; });
    chunk.badId = range.begin + (wrong - in);
    return;
  }
  if (lookup.weighted)
    std::copy_n(input.weights + range.begin, range.size(),
                target.weights + first);
  const int64_t *from = offsetsOf(lookup);
  if (target.offsets)
    for (int64_t b = chunk.bags.begin; b < chunk.bags.end; ++b)
      target.offsets[b + 1] = from[b + 1] - from[0];
  if (target.lengths)
    for (int64_t b = chunk.bags.begin; b < chunk.bags.end; ++b)
      target.lengths[b] = static_cast<int32_t>(from[b + 1] - from[b]);
}

template <typename Id, typename Packed>
void CpuIdPacker::fillSifted(const Chunk &chunk, int32_t bucket,
                             const IdTarget &target, int64_t *places) const {
  const ExchangeLookup &lookup = lookupOf(bucket);
  const int64_t *from = offsetsOf(lookup);
  const Id *in = static_cast<const Id *>(input.ids);
  Packed *out = reinterpret_cast<Packed *>(target.ids);
  Range rows = layout.buckets[bucket].rows;
  int64_t padding = paddingOf(lookup);
  int64_t next = firstIds[bucket][static_cast<size_t>(chunk.number)];
  for (int64_t b = chunk.bags.begin; b < chunk.bags.end; ++b) {
    int64_t begin = next;
    for (int64_t j = from[b]; j < from[b + 1]; ++j) {
      int64_t id = in[j];
      if (id < rows.begin || id >= rows.end || id == padding)
        continue;
      out[next] = static_cast<Packed>(id - rows.begin);
      if (lookup.weighted)
        target.weights[next] = input.weights[j];
      if (places)
        places[next] = j;
      ++next;
    }
    if (target.offsets)
      target.offsets[b + 1] = next;
    if (target.lengths)
      target.lengths[b] = static_cast<int32_t>(next - begin);
  }
}

void CpuIdPacker::copyToOthers(const Chunk &chunk, int32_t bucket,
                               const std::vector<IdTarget> &targets) const {
  const ExchangeLookup &lookup = lookupOf(bucket);
  int64_t begin = firstIds[bucket][static_cast<size_t>(chunk.number)];
  auto count = static_cast<size_t>(
      firstIds[bucket][static_cast<size_t>(chunk.number) + 1] - begin);
  const IdTarget &from = targets[0];
  for (size_t i = 1; count > 0 && i < targets.size(); ++i) {
    const IdTarget &to = targets[i];
    std::memcpy(to.ids + begin * packedBytes, from.ids + begin * packedBytes,
                count * static_cast<size_t>(packedBytes));
    if (lookup.weighted)
      std::memcpy(to.weights + begin, from.weights + begin,
                  count * sizeof(float));
  }
  for (size_t i = 1; i < targets.size(); ++i)
    if (targets[i].lengths)
      std::copy_n(from.lengths + chunk.bags.begin, chunk.bags.size(),
                  targets[i].lengths + chunk.bags.begin);
}

} // namespace neuroshard::runtime
