//===- Blocks.cpp - Layout of results and gradients -----------------------===//

#include "Blocks.h"

#include <map>

namespace neuroshard::runtime {

/// The direct blocks of a set for all ranks of samples.
static std::vector<Block>
makeDirectBlocks(const StreamSet &set, const Routed &routed,
                 const std::vector<std::vector<int64_t>> &idsOfPeer,
                 WireFormat format) {
  std::vector<Block> blocks;
  for (size_t peer = 0; peer < idsOfPeer.size(); ++peer)
    blocks.push_back(makeDirectBlock(
        set, static_cast<int64_t>(peer), routed.batchOfPeer[peer], format,
        [&](size_t stream) { return idsOfPeer[peer][stream]; }));
  return blocks;
}

std::vector<Block> makeOwnerBlocks(const ExchangeLayout &layout,
                                   const Device &device, const Routed &routed) {
  const StreamSet &set = layout.owners[device.rank()];
  std::vector<Block> blocks;
  for (size_t peer = 0; peer < routed.ownedIdsOfPeer.size(); ++peer)
    blocks.push_back(makeBlock(
        set, static_cast<int64_t>(peer), routed.batchOfPeer[peer],
        [&](size_t stream) { return routed.ownedIdsOfPeer[peer][stream]; }));
  return blocks;
}

std::vector<Block> makeDirectOwnerBlocks(const ExchangeLayout &layout,
                                         const Device &device,
                                         const Routed &routed,
                                         WireFormat format) {
  return makeDirectBlocks(layout.owners[device.rank()], routed,
                          routed.ownedIdsOfPeer, format);
}

std::vector<Block> makeLocalBlocks(const EntrySubset &subset,
                                   const Routed &routed, WireFormat format) {
  std::vector<std::vector<int64_t>> ids;
  for (const std::vector<int64_t> &ofPeer : routed.localIdsOfPeer)
    ids.push_back(subset.idsOf(ofPeer));
  return makeDirectBlocks(subset.set, routed, ids, format);
}

Block makeOwnBlock(const Device &device, const StreamSet &set,
                   const Routed &routed, WireFormat format) {
  return makeDirectBlock(
      set, device.rank(), routed.batch, format, [&](size_t stream) {
        return routed.buckets[set.streams[stream].bucket].numIds;
      });
}

std::vector<Block> makeBatchBlocks(const ExchangeLayout &layout,
                                   const Device &device, const Routed &routed,
                                   WireFormat format) {
  std::vector<Block> blocks;
  for (const StreamSet &set : layout.owners)
    blocks.push_back(makeOwnBlock(device, set, routed, format));
  return blocks;
}

void placeLocalRows(const Block &block, std::byte *first, WireFormat format,
                    std::span<LocalRows> rows,
                    std::span<const int32_t> entries) {
  for (size_t e = 0; e < block.begin.size(); ++e) {
    size_t entry = entries.empty() ? e : static_cast<size_t>(entries[e]);
    rows[entry] = {first + block.begin[e] * valueBytes(format), block.stride[e],
                   format};
  }
}

ReplicaUpdate makeReplicaUpdate(Device &device, const Routed &routed) {
  const StreamSet &local = device.gradientLayout(routed).locals[device.rank()];
  int64_t bags = 0;
  for (int64_t batch : routed.batchOfPeer)
    bags += batch;
  std::vector<int64_t> ids(local.streams.size());
  for (const std::vector<int64_t> &ofPeer : routed.localIdsOfPeer)
    for (size_t stream = 0; stream < ids.size(); ++stream)
      ids[stream] += ofPeer[stream];
  std::map<int32_t, ReplicaUpdate> &forms = device.kept.forms;
  auto earlier = forms.find(routed.exchange);
  ReplicaUpdate update = makeReplicaUpdate(
      device.manifest(), static_cast<size_t>(routed.exchange), local, bags, ids,
      earlier == forms.end() ? nullptr : &earlier->second);
  if (device.keepsGradients)
    forms.try_emplace(routed.exchange, update);
  return update;
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
