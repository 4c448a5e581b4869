//===- Blocks.h - Layout of results and gradients ---------------*- C++ -*-===//
//
// Where the rows of each lookup lie in the values that two devices exchange.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_BLOCKS_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_BLOCKS_H

#include "Device/Device.h"

namespace neuroshard::runtime {

/// The blocks on the owner's side, one per peer.
std::vector<Block> makeOwnerBlocks(const StreamSet &set,
                                   const ReceivedSet &received);
/// The blocks on the bags' side, one per owner, without what goes by relay.
std::vector<Block> makeBatchBlocks(const ExchangeLayout &layout,
                                   const Routed &routed);
/// The block of the device's replicated tables.
Block makeLocalBlock(const Device &device, const Routed &routed);

/// Sum of the blocks' sizes in floats.
int64_t totalFloats(const std::vector<Block> &blocks);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_BLOCKS_H
