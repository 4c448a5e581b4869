//===- Blocks.cpp - Layout of results and gradients -----------------------===//
//
// Both sides compute the same layout: the owner from the ids that it received,
// the rank of the samples from the ids that it sent.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"

namespace neuroshard::runtime {

std::vector<Block> makeOwnerBlocks(const StreamSet &set,
                                   const ReceivedSet &received) {
  std::vector<Block> blocks;
  for (int64_t peer = 0; peer < received.numPeers(); ++peer)
    blocks.push_back(makeBlock(set, received.bagsOf(peer), [&](size_t stream) {
      const std::vector<int64_t> &first =
          received.streams[stream].firstIdOfPeer;
      return first[static_cast<size_t>(peer) + 1] -
             first[static_cast<size_t>(peer)];
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
    block.size = block.directSize; // relays have the rest
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
