//===- RowViews.h - Views of partial rows of a result -----------*- C++ -*-===//
//
// The partial rows that make up one result, as they were received from their
// owners; or those into which one gradient is split, as they will be sent.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_ROWVIEWS_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_ROWVIEWS_H

#include "Device/Device.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace neuroshard::runtime {

/// The rows of some columns of a result in a received or sent buffer.
template <typename Float> struct RowsView {
  Float *first;
  int64_t stride;
  Range cols;
  int64_t numRows;
  /// Place in the input of each row's id; null if all rows are in order.
  const int64_t *positions;

  Float *row(int64_t index) const { return first + index * stride; }
};

/// The views of a lookup in the order of ResultLayout::parts, or of
/// ResultLayout::relayed for a relayed lookup; one view for a replicated table.
/// `blocks` and `rows` are per owner, `relayedRows` per group.
template <typename Float>
std::vector<RowsView<Float>>
makeViews(const Device &device, const Routed &routed, int64_t lookup,
          const std::vector<Block> &blocks, const std::vector<Float *> &rows,
          const std::vector<Float *> &relayedRows, const Block &localBlock,
          Float *localRows) {
  const ExchangeLayout &layout = device.layout(routed.exchange);
  const ResultLayout &result = layout.results[static_cast<size_t>(lookup)];
  const ExchangeLookup &spec = device.manifest()
                                   .exchanges[routed.exchange]
                                   .lookups[static_cast<size_t>(lookup)];
  auto view = [&](const Block &block, Float *base, int32_t entry, Range cols,
                  int32_t bucket) {
    const BucketState &state = routed.buckets[bucket];
    return RowsView<Float>{base + block.begin[entry], block.stride[entry], cols,
                           spec.pooled() ? routed.batch : state.numIds,
                           spec.pooled() ? nullptr
                                         : as<const int64_t>(state.positions)};
  };
  std::vector<RowsView<Float>> views;
  if (result.replicated) {
    Range all{0, device.manifest().tables[spec.table].dim};
    views.push_back(
        view(localBlock, localRows, result.localEntry, all,
             layout.bucketsOfLookup[static_cast<size_t>(lookup)][0]));
  }
  for (const RelayedColumns &part : result.relayed)
    views.push_back({relayedRows[part.group] + part.column,
                     layout.relays[part.group].width, part.cols, routed.batch,
                     nullptr});
  if (!result.relayed.empty())
    return views;
  for (const PartialColumns &part : result.parts)
    views.push_back(view(blocks[part.device], rows[part.device], part.entry,
                         part.cols, part.bucket));
  return views;
}

/// Calls function(begin, end) on ranges of rows of `dim` values, in parallel.
template <typename Function>
void forRowRanges(ThreadPool &threads, int64_t rows, int64_t dim,
                  const Function &function) {
  constexpr int64_t kValuesPerChunk = 1 << 15;
  int64_t chunks = std::clamp<int64_t>(rows * dim / kValuesPerChunk, 1,
                                       std::max<int64_t>(rows, 1));
  threads.parallelFor(chunks, [&](int64_t i) {
    function(rows * i / chunks, rows * (i + 1) / chunks);
  });
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_ROWVIEWS_H
