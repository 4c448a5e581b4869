//===- Blocks.cpp - Layout of the rows between owners and bags ------------===//
//
// Both sides derive the same layout: the owner from the ids it received, the
// bags' home from the ids it sent.
//
//===----------------------------------------------------------------------===//

#include "Step/Steps.h"

namespace neuroshard::runtime {

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
    block.size += idsOfStream(size_t(entry.stream)) * entry.cols.size();
  }
  block.directSize = block.size;
  for (size_t e = 0; e < set.entries.size(); ++e)
    if (set.entries[e].relayed)
      block.begin[e] += block.directSize;
  block.size += batch * set.relayedWidth;
  return block;
}

std::vector<Block> makeOwnerBlocks(const StreamSet &set,
                                   const ReceivedSet &received) {
  std::vector<Block> blocks;
  for (int64_t peer = 0; peer < received.numPeers(); ++peer)
    blocks.push_back(makeBlock(set, received.bagsOf(peer), [&](size_t stream) {
      const std::vector<int64_t> &first =
          received.streams[stream].firstIdOfPeer;
      return first[size_t(peer) + 1] - first[size_t(peer)];
    }));
  return blocks;
}

std::vector<Block> makeBatchBlocks(const ExchangeLayout &layout,
                                   const Routed &routed) {
  std::vector<Block> blocks;
  for (const StreamSet &set : layout.owners)
    blocks.push_back(makeBlock(set, routed.batch, [&](size_t stream) {
      return routed.buckets[set.streams[stream].bucket].numIds;
    }));
  for (Block &block : blocks)
    block.size = block.directSize; // the rest is at the relays
  return blocks;
}

Block makeLocalBlock(const Device &device, const Routed &routed) {
  const StreamSet &set = device.layout(routed.exchange).locals[device.rank()];
  return makeBlock(set, routed.batch, [&](size_t stream) {
    return routed.buckets[set.streams[stream].bucket].numIds;
  });
}

int64_t totalFloats(const std::vector<Block> &blocks) {
  int64_t total = 0;
  for (const Block &block : blocks)
    total += block.size;
  return total;
}

} // namespace neuroshard::runtime
