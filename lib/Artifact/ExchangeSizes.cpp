//===- ExchangeSizes.cpp - Sizes of the messages of an exchange -----------===//

#include "neuroshard/Artifact/ExchangeSizes.h"

#include "neuroshard/Artifact/HierarchicalSizes.h"

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

} // namespace neuroshard
