//===- InPlaceIds.cpp - Ids that kernels read in the caller's memory ------===//

#include "InPlaceIds.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>

namespace neuroshard::runtime {

bool canReadInPlace(const Device &device, const Routed &routed) {
  const ExchangeLayout &layout = device.layout(routed.exchange);
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  bool isWhole =
      std::all_of(layout.buckets.begin(), layout.buckets.end(),
                  [](const BucketLayout &bucket) { return bucket.whole; });
  bool isPooled =
      std::all_of(spec.lookups.begin(), spec.lookups.end(),
                  [](const ExchangeLookup &lookup) { return lookup.pooled(); });
  bool isCounted = spec.features.size() == 1 || (isPooled && !spec.weighted);
  return device.numDevices() == 1 && device.backend->readsInPlace() &&
         !layout.hasReplicated && isWhole && isCounted;
}

void readInPlace(Device &device, const JaggedInput &input, Routed &routed) {
  const ExchangeLayout &layout = device.layout(routed.exchange);
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  if (routed.batch == 0 && input.numIds > 0)
    fail(spec.where, "found ", input.numIds, " ids, but no bags");
  auto acquire = [&](BufferKind kind, int64_t count, size_t bytes) {
    return device.buffers->acquire(kind, count * static_cast<int64_t>(bytes));
  };
  int64_t bags = input.numOffsets - 1;
  routed.owned.offsets =
      acquire(BufferKind::ReceivedIds, input.numOffsets, sizeof(int64_t));
  Buffer sizes;
  for (size_t k = 0; k < spec.lookups.size(); ++k) {
    const ExchangeLookup &lookup = spec.lookups[k];
    if (!lookup.pooled())
      routed.lookups[k].resultRows = input.numIds; // of the only feature
    if (lookup.pooling != Pooling::Mean)
      continue;
    if (!sizes)
      sizes = acquire(BufferKind::Places, bags, sizeof(float));
    auto *ofFeature = as<float>(sizes) + lookup.feature * routed.batch;
    routed.lookups[k].bagCounts =
        Buffer(sizes, reinterpret_cast<std::byte *>(ofFeature));
  }
  auto *offsets = as<int64_t>(routed.owned.offsets);
  device.backend->readInPlace(routed.exchange, input, offsets,
                              as<float>(sizes));
  for (BucketState &bucket : routed.buckets)
    bucket.numIds = input.numIds;
  for (const StreamLayout &stream : layout.owners[0].streams) {
    int64_t first = spec.lookups[stream.lookup].feature * routed.batch;
    PeerIds ids;
    ids.ids = static_cast<const std::byte *>(input.ids);
    ids.weights = input.weights;
    ids.offsets = stream.pooled ? offsets + first : nullptr;
    ids.bags = routed.batch;
    ids.numIds = input.numIds;
    ids.isExact = spec.features.size() == 1;
    routed.owned.streams.push_back({ids});
  }
}

} // namespace neuroshard::runtime
