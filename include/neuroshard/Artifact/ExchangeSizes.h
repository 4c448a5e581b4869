//===- ExchangeSizes.h - Bytes of the buffers of an exchange ---*- C++ -*-===//
//
// What travels between each pair of devices in one step, from the layout, the
// batches and the numbers of ids alone. Runtimes lay their buffers out by the
// same functions.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_EXCHANGESIZES_H
#define NEUROSHARD_ARTIFACT_EXCHANGESIZES_H

#include "neuroshard/Artifact/DeviceGroups.h"
#include "neuroshard/Artifact/ExchangeLayout.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace neuroshard {

/// Rows of values that travel between one owner and the rank of the samples.
/// Entry e begins at begin[e]; its rows are stride[e] apart. Offsets are in
/// values. What goes by relay comes last.
struct Block {
  std::vector<int64_t> begin;
  std::vector<int64_t> stride;
  int64_t size = 0;
  int64_t directSize = 0;
};

/// The block of a rank with this batch and so many ids in each stream.
Block makeBlock(const StreamSet &set, int64_t batch,
                const std::function<int64_t(size_t stream)> &idsOfStream);

/// What one step brings to an exchange.
struct ExchangeLoad {
  std::vector<int64_t> batches; ///< per device: its samples.
  /// Per device: how many of its ids fall into each bucket.
  std::vector<std::vector<int64_t>> idsOfBucket;
};

/// Bytes by sender and receiver, with what stays on a device.
using PairBytes = std::vector<std::vector<int64_t>>;

/// What one step sends, without the headers that tell sizes.
struct ExchangeBytes {
  PairBytes ids;
  PairBytes results;          ///< all that owners send.
  PairBytes relayedResults;   ///< what relays send on.
  PairBytes gradients;        ///< all that ranks of samples send.
  PairBytes relayedGradients; ///< what relays send on.
};

/// Without replicated tables, whose gradients are gathered by all.
ExchangeBytes exchangeBytes(const ExchangeLayout &layout,
                            const ExchangeSpec &spec,
                            const DeviceGroups &groups, ElementType wireType,
                            const ExchangeLoad &load);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_EXCHANGESIZES_H
