//===- Blocks.cpp - Layout of results and gradients -----------------------===//

#include "Blocks.h"

namespace neuroshard::runtime {

/// The blocks of a set for all ranks of samples.
static std::vector<Block>
makeBlocks(const StreamSet &set, const Routed &routed,
           const std::vector<std::vector<int64_t>> &idsOfPeer) {
  std::vector<Block> blocks;
  for (size_t peer = 0; peer < idsOfPeer.size(); ++peer)
    blocks.push_back(
        makeBlock(set, routed.batchOfPeer[peer],
                  [&](size_t stream) { return idsOfPeer[peer][stream]; }));
  return blocks;
}

std::vector<Block> makeOwnerBlocks(const Device &device, const Routed &routed) {
  return makeBlocks(device.layout(routed.exchange).owners[device.rank()],
                    routed, routed.ownedIdsOfPeer);
}

std::vector<Block> makeGatheredBlocks(const Device &device,
                                      const Routed &routed) {
  return makeBlocks(device.layout(routed.exchange).locals[device.rank()],
                    routed, routed.localIdsOfPeer);
}

/// The block of a set for the local batch.
static Block makeOwnBlock(const StreamSet &set, const Routed &routed) {
  return makeBlock(set, routed.batch, [&](size_t stream) {
    return routed.buckets[set.streams[stream].bucket].numIds;
  });
}

std::vector<Block> makeBatchBlocks(const Device &device, const Routed &routed) {
  std::vector<Block> blocks;
  for (const StreamSet &set : device.layout(routed.exchange).owners) {
    blocks.push_back(makeOwnBlock(set, routed));
    blocks.back().size = blocks.back().directSize; // relays have the rest
  }
  return blocks;
}

Block makeLocalBlock(const Device &device, const Routed &routed) {
  return makeOwnBlock(device.layout(routed.exchange).locals[device.rank()],
                      routed);
}

std::vector<int64_t> sizesOf(const std::vector<Block> &blocks) {
  std::vector<int64_t> sizes;
  for (const Block &block : blocks)
    sizes.push_back(block.size);
  return sizes;
}

std::vector<int64_t> beginsOf(const std::vector<int64_t> &sizes) {
  std::vector<int64_t> begins = {0};
  for (int64_t size : sizes)
    begins.push_back(begins.back() + size);
  return begins;
}

} // namespace neuroshard::runtime
