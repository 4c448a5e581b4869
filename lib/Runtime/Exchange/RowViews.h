//===- RowViews.h - Views of partial rows of a result -----------*- C++ -*-===//
//
// The partial rows that make up one result, as they were received from their
// owners; or those into which one gradient is split, as they will be sent.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_ROWVIEWS_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_ROWVIEWS_H

#include "Device/Device.h"
#include "neuroshard/Artifact/HierarchicalSizes.h"

#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard::runtime {

/// The rows of some columns of a result in a received or sent buffer.
template <typename Byte> struct RowsView {
  Byte *first; ///< the scale of the first row, if it has one.
  WireFormat format;
  int64_t stride; ///< in values.
  Range cols;
  int64_t numRows;
  /// Place in the input of each row's id; null if all rows are in order.
  const int64_t *places;
};

/// Where the rows of one exchange begin, or those of some samples that go by
/// relay.
template <typename Byte> struct RowBases {
  Range samples;                    ///< of this rank.
  const std::vector<Block> *blocks; ///< per owner.
  std::vector<Byte *> rows;         ///< per owner.
  std::vector<Byte *> relayedRows;  ///< per group.
  /// Per group: columns of the relayed rows.
  std::vector<ScaledColumns> relayedColumns;
  /// By entry of replicated tables.
  const std::vector<LocalRows> *local;
  WireFormat format;
};

/// Of all rows of one exchange: what goes directly, and what goes by relay,
/// piece by piece.
template <typename Byte> struct AllRowBases {
  RowBases<Byte> direct;
  std::vector<RowBases<Byte>> pieces;

  /// Those of a result, one after the other.
  std::span<const RowBases<Byte>> of(const ResultLayout &result) const {
    if (result.relayed.empty())
      return {&direct, 1};
    return pieces;
  }
};

inline Range samplesOf(const RelayedPiece &piece, int64_t rank) {
  int64_t begin = piece.begins[static_cast<size_t>(rank)];
  return {begin, begin + piece.batches[static_cast<size_t>(rank)]};
}

/// The views of a lookup in the order of ResultLayout::parts, or of
/// ResultLayout::relayed for a relayed lookup; one view for a replicated table.
/// `layout`: that of results or that of gradients.
template <typename Byte>
std::vector<RowsView<Byte>>
makeViews(const ExchangeLayout &layout, const Device &device,
          const Routed &routed, size_t lookup, const RowBases<Byte> &bases) {
  const ResultLayout &result = layout.results[lookup];
  const ExchangeLookup &spec =
      device.manifest().exchanges[routed.exchange].lookups[lookup];
  auto view = [&](Byte *first, WireFormat format, int64_t stride, Range cols,
                  int32_t bucket) {
    const BucketState &state = routed.buckets[bucket];
    return RowsView<Byte>{first,
                          format,
                          stride,
                          cols,
                          spec.pooled() ? routed.batch : state.numIds,
                          spec.pooled() ? nullptr
                                        : as<const int64_t>(state.places)};
  };
  std::vector<RowsView<Byte>> views;
  if (result.replicated) {
    Range all{0, device.manifest().tables[spec.table].dim};
    const LocalRows &rows =
        (*bases.local)[static_cast<size_t>(result.localEntry)];
    views.push_back(view(rows.first, rows.format, rows.stride, all,
                         layout.bucketsOfLookup[lookup][0]));
  }
  for (const RelayedColumns &part : result.relayed) {
    const ScaledColumns &columns = bases.relayedColumns[part.group];
    views.push_back({bases.relayedRows[part.group] +
                         columns.at(part.column) * valueBytes(bases.format),
                     bases.format, columns.width(), part.cols,
                     bases.samples.size(), nullptr});
  }
  if (!result.relayed.empty())
    return views;
  for (const PartialColumns &part : result.parts) {
    EntryPlace place = placeFor(layout, part, device.rank());
    const Block &block = (*bases.blocks)[place.device];
    views.push_back(
        view(bases.rows[place.device] +
                 block.begin[place.entry] * valueBytes(bases.format),
             bases.format, block.stride[place.entry], part.cols, part.bucket));
  }
  return views;
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_ROWVIEWS_H
