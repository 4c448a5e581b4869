//===- Blocks.h - Layout of results and gradients ---------------*- C++ -*-===//
//
// A block is what one owner and one rank of samples exchange: the values of all
// entries of the owner for the bags of the rank.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_BLOCKS_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_BLOCKS_H

#include "Device/Device.h"

namespace neuroshard::runtime {

/// The blocks of an owner, one per peer.
std::vector<Block> makeOwnerBlocks(const StreamSet &set,
                                   const ReceivedSet &received);
/// The blocks of a rank of samples, one per owner, without relayed values.
std::vector<Block> makeBatchBlocks(const ExchangeLayout &layout,
                                   const Routed &routed);
/// The block of the device's replicated tables.
Block makeLocalBlock(const Device &device, const Routed &routed);

/// Sum of the blocks' sizes in floats.
int64_t totalFloats(const std::vector<Block> &blocks);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_BLOCKS_H
