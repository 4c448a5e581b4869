//===- IdPacking.cpp - Checks ids and sorts them by owner on a GPU --------===//

#include "IdPacking.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>

namespace neuroshard::cuda {

using namespace runtime;

namespace {

constexpr int64_t kCountBytes = sizeof(int64_t);
/// The words of bad offsets and of bad ids.
constexpr size_t kWords = 2;
/// Where bags have more ids, all lanes of a warp share one.
constexpr int64_t kIdsOfLane = 8;

int64_t *countsAt(const Buffer &buffer, int64_t place) {
  return as<int64_t>(buffer) + place;
}

/// Copies values of 8 bytes.
RowMove copyOfWords(const int64_t *from, void *to, int64_t count) {
  RowMove move;
  move.source.first = reinterpret_cast<const std::byte *>(from);
  move.target.first = static_cast<std::byte *>(to);
  move.rows = 1;
  move.width = 2 * count; // of f32
  return move;
}

RowMove copyOfFloats(const void *from, void *to, int64_t count) {
  RowMove move;
  move.source.first = static_cast<const std::byte *>(from);
  move.target.first = static_cast<std::byte *>(to);
  move.rows = 1;
  move.width = count;
  return move;
}

} // namespace

IdPacking::IdPacking(PackingTools &tools, int32_t exchange,
                     const JaggedInput &input, int64_t batch, CUstream stream)
    : tools(tools), exchange(exchange),
      spec(tools.manifest.exchanges[static_cast<size_t>(exchange)]),
      packedBytes(tools.manifest.packedIdBytes(spec)),
      layout(tools.manifest.layouts[static_cast<size_t>(exchange)]),
      input(input), batch(batch), stream(stream) {
  auto numBuckets = static_cast<int64_t>(layout.buckets.size());
  auto numFirsts = static_cast<int64_t>(spec.features.size()) + 1;
  auto acquire = [&](int64_t bytes) {
    return tools.buffers.acquire(BufferKind::Places, bytes);
  };
  lengths = acquire(numBuckets * batch * static_cast<int64_t>(sizeof(int32_t)));
  firsts = acquire(numBuckets * (batch + 1) * kCountBytes);
  counts = tools.buffers.take(
      (static_cast<int64_t>(kWords) + numFirsts + numBuckets) * kCountBytes);
  for (size_t b = 0; b < layout.buckets.size(); ++b)
    buckets.push_back(describe(b));
}

nsg_bucket IdPacking::describe(size_t bucket) const {
  const BucketLayout &placed = layout.buckets[bucket];
  const ExchangeLookup &lookup = spec.lookups[placed.lookup];
  auto place = static_cast<int64_t>(bucket);
  nsg_bucket result = {};
  result.ids = input.ids;
  result.offsets = input.offsets + lookup.feature * batch;
  result.sample_weights = input.weights;
  result.num_ids = input.numIds;
  result.bags = batch;
  result.row_begin = placed.rows.begin;
  result.rows = placed.rows.size();
  result.padding = lookup.dropsPadding() ? *lookup.paddingIdx : -1;
  bool isFirst =
      layout.bucketsOfLookup[placed.lookup][0] == static_cast<int32_t>(bucket);
  result.checked_rows = isFirst ? tools.manifest.tables[lookup.table].rows : 0;
  result.lookup = placed.lookup;
  result.lengths = as<int32_t>(lengths) + place * batch;
  result.first = countsAt(firsts, place * (batch + 1));
  result.flags = (spec.idBytes() == 8 ? NSG_ID64 : 0) |
                 (packedBytes == 8 ? NSG_PACKED_ID64 : 0);
  auto bags = static_cast<int64_t>(spec.features.size()) * batch;
  result.lanes = input.numIds > bags * kIdsOfLane ? NSG_WARP : 1;
  return result;
}

void IdPacking::addUpBags() {
  auto totals = static_cast<int64_t>(kWords + spec.features.size() + 1);
  std::vector<nsg_bags> sets;
  for (const nsg_bucket &bucket : buckets) {
    auto number = static_cast<int64_t>(sets.size());
    sets.push_back({bucket.lengths, const_cast<int64_t *>(bucket.first), batch,
                    countsAt(counts, totals + number)});
  }
  tools.routing.addUp(sets, stream);
}

/// The offset of each feature's first bag, and the last one.
void IdPacking::findFirstIds(int64_t *firstIds) {
  RowMove move = copyOfWords(input.offsets, firstIds, 1);
  move.rows = static_cast<int64_t>(spec.features.size()) + 1;
  move.source.stride = 2 * batch;
  move.target.stride = 2;
  tools.routing.moveRows({&move, 1}, stream);
}

/// Waits for the GPU.
const int64_t *IdPacking::readCounts() {
  int64_t bytes =
      static_cast<int64_t>(kWords + spec.features.size() + 1 + buckets.size()) *
      kCountBytes;
  if (tools.counts.size() < bytes)
    tools.counts = PinnedBlock(tools.gpu, bytes);
  const CudaDriver &driver = tools.gpu.driver;
  driver.check(
      driver.memcpyDtoHAsync(tools.counts.data(),
                             reinterpret_cast<CUdeviceptr>(counts.get()),
                             static_cast<size_t>(bytes), stream),
      "reading the numbers of ids");
  driver.check(driver.streamSynchronize(stream), "waiting for the GPU");
  return reinterpret_cast<const int64_t *>(tools.counts.data());
}

IdCounts IdPacking::count() {
  ContextScope scope(tools.gpu);
  auto *words = as<uint64_t>(counts);
  tools.gpu.driver.check(
      tools.gpu.driver.memsetD8Async(reinterpret_cast<CUdeviceptr>(words), 0xff,
                                     kWords * sizeof(uint64_t), stream),
      "clearing the words of bad ids");
  auto numFeatures = static_cast<int64_t>(spec.features.size());
  tools.routing.checkOffsets(input.offsets, numFeatures * batch, words, stream);
  tools.routing.countBags(buckets, words + 1, stream);
  addUpBags();
  findFirstIds(countsAt(counts, kWords));
  const int64_t *found = readCounts();
  const int64_t *firstIds = found + kWords;
  bool isBad = found[0] != -1 || found[1] != -1 || firstIds[0] != 0 ||
               firstIds[numFeatures] != input.numIds;
  if (isBad)
    explain();
  const int64_t *ofBucket = firstIds + numFeatures + 1;
  idsOfBucket.assign(ofBucket, ofBucket + buckets.size());
  return {{firstIds, ofBucket}, idsOfBucket};
}

void IdPacking::pack(const PackTargets &targets) {
  ContextScope scope(tools.gpu);
  for (size_t b = 0; b < buckets.size(); ++b) {
    nsg_bucket &bucket = buckets[b];
    const IdTarget &target = targets.ofBucket[b][0];
    bucket.packed_ids = target.ids;
    bucket.packed_weights = target.weights;
    bucket.places = targets.places[b];
    if (bucket.checked_rows > 0) // the first of its lookup
      bucket.bag_counts = targets.bagCounts[static_cast<size_t>(bucket.lookup)];
  }
  tools.routing.packIds(buckets, stream);
  std::vector<RowMove> moves;
  for (size_t b = 0; b < buckets.size(); ++b)
    addCopies(b, targets.ofBucket[b], moves);
  tools.routing.moveRows(moves, stream);
}

/// Lengths or offsets of the bags for all targets, ids for all but the first,
/// which the kernel has written.
void IdPacking::addCopies(size_t bucket, const std::vector<IdTarget> &targets,
                          std::vector<RowMove> &moves) const {
  const nsg_bucket &counted = buckets[bucket];
  const IdTarget &first = targets[0];
  int64_t numIds = idsOfBucket[bucket];
  for (size_t i = 0; i < targets.size(); ++i) {
    const IdTarget &target = targets[i];
    if (target.lengths)
      moves.push_back(copyOfFloats(counted.lengths, target.lengths, batch));
    if (target.offsets)
      moves.push_back(copyOfWords(counted.first, target.offsets, batch + 1));
    if (i == 0 || numIds == 0)
      continue;
    int64_t floatsOfId = packedBytes / static_cast<int64_t>(sizeof(float));
    moves.push_back(copyOfFloats(first.ids, target.ids, numIds * floatsOfId));
    if (target.weights)
      moves.push_back(copyOfFloats(first.weights, target.weights, numIds));
  }
}

void IdPacking::explain() const {
  auto copy = [&](const void *from, int64_t bytes) {
    std::vector<std::byte> values(static_cast<size_t>(bytes));
    if (bytes > 0)
      tools.gpu.driver.check(
          tools.gpu.driver.memcpyDtoH(values.data(),
                                      reinterpret_cast<CUdeviceptr>(from),
                                      values.size()),
          "reading ids");
    return values;
  };
  std::vector<std::byte> ids = copy(input.ids, input.numIds * spec.idBytes());
  std::vector<std::byte> offsets =
      copy(input.offsets, input.numOffsets * kCountBytes);
  std::vector<float> weights(input.weights ? static_cast<size_t>(input.numIds)
                                           : 0);
  JaggedInput onHost = {ids.data(), input.numIds,
                        reinterpret_cast<const int64_t *>(offsets.data()),
                        input.numOffsets, weights.data()};
  std::unique_ptr<IdPacker> packer =
      tools.host.packIds(exchange, onHost, batch);
  packer->count();
  // What it has not looked at yet, it checks while it writes.
  std::vector<std::byte> scratch(ids.size());
  std::vector<int32_t> scratchLengths(static_cast<size_t>(batch));
  std::vector<int64_t> scratchPlaces(static_cast<size_t>(input.numIds));
  PackTargets targets;
  targets.ofBucket.assign(buckets.size(), {{scratch.data(), weights.data(),
                                            scratchLengths.data(), nullptr}});
  targets.places.assign(buckets.size(), scratchPlaces.data());
  targets.bagCounts.assign(spec.lookups.size(), nullptr);
  packer->pack(targets);
  fail(spec.where, "the ids have changed while they were checked");
}

} // namespace neuroshard::cuda
