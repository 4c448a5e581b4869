//===- Blocks.h - Layout of results and gradients ---------------*- C++ -*-===//
//
// A block is what one owner and one rank of samples exchange: the values of all
// entries of the owner for the bags of the rank. Both sides compute the same
// layout, from the numbers of ids that they have told each other.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_BLOCKS_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_BLOCKS_H

#include "Device/Device.h"

namespace neuroshard::runtime {

/// The blocks of this device as an owner, one per rank of samples.
std::vector<Block> makeOwnerBlocks(const Device &device, const Routed &routed);
/// The blocks of a rank of samples, one per owner, without relayed values.
std::vector<Block> makeBatchBlocks(const Device &device, const Routed &routed);
/// The block of the device's replicated tables, on its own batch.
Block makeLocalBlock(const Device &device, const Routed &routed);
/// The same for all ranks.
std::vector<Block> makeGatheredBlocks(const Device &device,
                                      const Routed &routed);

/// Sizes of blocks, in values.
std::vector<int64_t> sizesOf(const std::vector<Block> &blocks);
/// Where each of consecutive sections begins, then the sum of their sizes.
std::vector<int64_t> beginsOf(const std::vector<int64_t> &sizes);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_BLOCKS_H
