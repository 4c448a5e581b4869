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

#include <span>

namespace neuroshard::runtime {

/// The blocks of this device as an owner, one per rank of samples, as kernels
/// read and write them. `layout`: here and below, that of results or that of
/// gradients.
std::vector<Block> makeOwnerBlocks(const ExchangeLayout &layout,
                                   const Device &device, const Routed &routed);
/// What of them travels directly, as it lies in messages.
std::vector<Block> makeDirectOwnerBlocks(const ExchangeLayout &layout,
                                         const Device &device,
                                         const Routed &routed,
                                         WireFormat format);
/// The same for a rank of samples, one per owner.
std::vector<Block> makeBatchBlocks(const ExchangeLayout &layout,
                                   const Device &device, const Routed &routed,
                                   WireFormat format);
/// The block of a set on the device's own batch.
Block makeOwnBlock(const Device &device, const StreamSet &set,
                   const Routed &routed, WireFormat format);
/// Sets where the rows of a block are, which begins at `first`, for the entries
/// with these numbers; without numbers, for all.
void placeLocalRows(const Block &block, std::byte *first, WireFormat format,
                    std::span<LocalRows> rows,
                    std::span<const int32_t> entries = {});

/// How the replicated tables of an exchange are updated in this step: as in the
/// kept ones, if there are any.
ReplicaUpdate makeReplicaUpdate(Device &device, const Routed &routed);
/// The blocks of some of the device's replicated tables, one per rank.
std::vector<Block> makeLocalBlocks(const EntrySubset &subset,
                                   const Routed &routed, WireFormat format);

/// Sizes of blocks, in values.
std::vector<int64_t> sizesOf(const std::vector<Block> &blocks);
/// Where each of consecutive sections begins, then the sum of their sizes.
std::vector<int64_t> beginsOf(const std::vector<int64_t> &sizes);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_BLOCKS_H
