//===- Blocks.cpp - Layout of results and gradients -----------------------===//

#include "Blocks.h"

namespace neuroshard::runtime {

/// The direct blocks of a set for all ranks of samples.
static std::vector<Block>
makeDirectBlocks(const StreamSet &set, const Routed &routed,
                 const std::vector<std::vector<int64_t>> &idsOfPeer,
                 WireFormat format) {
  std::vector<Block> blocks;
  for (size_t peer = 0; peer < idsOfPeer.size(); ++peer)
    blocks.push_back(makeDirectBlock(
        set, routed.batchOfPeer[peer], format,
        [&](size_t stream) { return idsOfPeer[peer][stream]; }));
  return blocks;
}

std::vector<Block> makeOwnerBlocks(const Device &device, const Routed &routed) {
  const StreamSet &set = device.layout(routed.exchange).owners[device.rank()];
  std::vector<Block> blocks;
  for (size_t peer = 0; peer < routed.ownedIdsOfPeer.size(); ++peer)
    blocks.push_back(
        makeBlock(set, routed.batchOfPeer[peer], [&](size_t stream) {
          return routed.ownedIdsOfPeer[peer][stream];
        }));
  return blocks;
}

std::vector<Block> makeDirectOwnerBlocks(const Device &device,
                                         const Routed &routed,
                                         WireFormat format) {
  return makeDirectBlocks(device.layout(routed.exchange).owners[device.rank()],
                          routed, routed.ownedIdsOfPeer, format);
}

std::vector<Block> makeGatheredBlocks(const Device &device,
                                      const Routed &routed, WireFormat format) {
  return makeDirectBlocks(device.layout(routed.exchange).locals[device.rank()],
                          routed, routed.localIdsOfPeer, format);
}

/// The direct block of a set for the local batch.
static Block makeOwnBlock(const StreamSet &set, const Routed &routed,
                          WireFormat format) {
  return makeDirectBlock(set, routed.batch, format, [&](size_t stream) {
    return routed.buckets[set.streams[stream].bucket].numIds;
  });
}

std::vector<Block> makeBatchBlocks(const Device &device, const Routed &routed,
                                   WireFormat format) {
  std::vector<Block> blocks;
  for (const StreamSet &set : device.layout(routed.exchange).owners)
    blocks.push_back(makeOwnBlock(set, routed, format));
  return blocks;
}

Block makeLocalBlock(const Device &device, const Routed &routed,
                     WireFormat format) {
  return makeOwnBlock(device.layout(routed.exchange).locals[device.rank()],
                      routed, format);
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
