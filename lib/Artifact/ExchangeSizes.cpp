//===- ExchangeSizes.cpp - Bytes of the buffers of an exchange ------------===//

#include "neuroshard/Artifact/ExchangeSizes.h"

#include "neuroshard/Artifact/HierarchicalSizes.h"
#include "neuroshard/Artifact/IdPayload.h"

namespace neuroshard {

Block makeBlock(const StreamSet &set, int64_t batch,
                const std::function<int64_t(size_t stream)> &idsOfStream) {
  Block block;
  block.size = batch * set.pooledWidth;
  for (const EntryLayout &entry : set.entries) {
    if (entry.pooled) {
      block.begin.push_back(entry.pooledColumn);
      block.stride.push_back(entry.relayed ? set.relayedWidth
                                           : set.pooledWidth);
      continue;
    }
    block.begin.push_back(block.size);
    block.stride.push_back(entry.cols.size());
    block.size +=
        idsOfStream(static_cast<size_t>(entry.stream)) * entry.cols.size();
  }
  block.directSize = block.size;
  for (size_t e = 0; e < set.entries.size(); ++e)
    if (set.entries[e].relayed)
      block.begin[e] += block.directSize;
  block.size += batch * set.relayedWidth;
  return block;
}

int64_t HierarchicalSizes::ofSamples(int64_t owner, int64_t sampleRank) const {
  return batches[static_cast<size_t>(sampleRank)] *
         layout.owners[static_cast<size_t>(owner)].relayedWidth;
}

int64_t HierarchicalSizes::ownerToRelay(int64_t owner, int64_t relay) const {
  if (!groups.sameGroup(owner, relay))
    return 0;
  int64_t values = 0;
  for (int32_t rank : groups.devicesWithIndex(groups.placeOf(relay).index))
    values += ofSamples(owner, rank);
  return values;
}

int64_t HierarchicalSizes::relayToSamples(int64_t relay,
                                          int64_t sampleRank) const {
  if (groups.placeOf(relay).index != groups.placeOf(sampleRank).index)
    return 0;
  return batches[static_cast<size_t>(sampleRank)] *
         layout.relays[static_cast<size_t>(groups.placeOf(relay).group)].width;
}

ExchangeBytes exchangeBytes(const ExchangeLayout &layout,
                            const ExchangeSpec &spec,
                            const DeviceGroups &groups, ElementType wireType,
                            const ExchangeLoad &load) {
  size_t count = load.batches.size();
  PairBytes none(count, std::vector<int64_t>(count, 0));
  ExchangeBytes bytes{none, none, none, none, none};
  HierarchicalSizes relayed(layout, groups, load.batches);
  bool hasRelays = !layout.relays.empty();
  int64_t valueBytes = elementBytes(wireType);
  for (size_t owner = 0; owner < count; ++owner)
    for (size_t rank = 0; rank < count; ++rank) {
      const StreamSet &set = layout.owners[owner];
      const std::vector<int64_t> &ids = load.idsOfBucket[rank];
      std::vector<int64_t> idsOfStream;
      for (const StreamLayout &stream : set.streams)
        idsOfStream.push_back(ids[static_cast<size_t>(stream.bucket)]);
      IdPayload payload(set, load.batches[rank], spec.idBytes());
      payload.placeIds(idsOfStream);
      bytes.ids[rank][owner] = payload.bytes();

      int64_t direct = makeBlock(set, load.batches[rank], [&](size_t stream) {
                         return idsOfStream[stream];
                       }).directSize;
      bytes.results[owner][rank] = direct * valueBytes;
      bytes.gradients[rank][owner] = direct * valueBytes;
      if (!hasRelays)
        continue;
      // The other device of the pair is a relay here.
      int64_t inGroup = relayed.ownerToRelay(static_cast<int64_t>(owner),
                                             static_cast<int64_t>(rank));
      int64_t across = relayed.relayToSamples(static_cast<int64_t>(owner),
                                              static_cast<int64_t>(rank));
      bytes.results[owner][rank] += inGroup * valueBytes;
      bytes.relayedGradients[rank][owner] += inGroup * valueBytes;
      bytes.relayedResults[owner][rank] += across * valueBytes;
      bytes.gradients[rank][owner] += across * valueBytes;
    }
  return bytes;
}

} // namespace neuroshard
