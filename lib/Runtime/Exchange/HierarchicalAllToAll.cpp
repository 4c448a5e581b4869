//===- HierarchicalAllToAll.cpp - Rows and pieces of both directions ------===//

#include "HierarchicalAllToAll.h"
#include "neuroshard/Artifact/RelayPieces.h"

namespace neuroshard::runtime {

std::vector<RowsOfMessage>
HierarchicalExchange::relayedRows(int64_t sampleRank) const {
  int64_t batch = batches[static_cast<size_t>(sampleRank)];
  int64_t width = layout.owners[static_cast<size_t>(rank)].relayedWidth;
  if (!isScaled(format))
    return {{0, batch * width, 0, batch * width, 1, batch * width}};
  ScaledColumns columns = columnsOfOwner(rank);
  int32_t index = groups.placeOf(rank).index;
  std::vector<RowsOfMessage> rows;
  for (const RelaySum &sum : relay.sums)
    for (const RelaySource &source : sum.sources)
      if (source.index == index)
        rows.push_back({source.column, width, columns.at(source.column),
                        columns.width(), batch, sum.size});
  return rows;
}

std::vector<ScaledColumns> relayedColumns(const ExchangeLayout &layout,
                                          Device &device, const Routed &routed,
                                          WireFormat format) {
  std::vector<ScaledColumns> columns;
  if (layout.relays.empty())
    return columns;
  HierarchicalExchange exchange(layout, device, routed, format);
  for (size_t group = 0; group < exchange.layout.relays.size(); ++group)
    columns.push_back(exchange.columnsOfRelays(static_cast<int64_t>(group)));
  return columns;
}

std::vector<RelayedPiece> makePieces(const ExchangeLayout &layout,
                                     Device &device, const Routed &routed,
                                     WireFormat format) {
  int64_t count = relayPieces(
      HierarchicalExchange(layout, device, routed, format).relayBytes());
  std::vector<RelayedPiece> pieces(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t batch : routed.batchOfPeer) {
      Range samples = samplesOfPiece(batch, i, count);
      pieces[static_cast<size_t>(i)].begins.push_back(samples.begin);
      pieces[static_cast<size_t>(i)].batches.push_back(samples.size());
    }
  return pieces;
}

std::vector<int64_t> directSizes(const std::vector<Block> &blocks,
                                 bool isFirst) {
  return isFirst ? sizesOf(blocks) : std::vector<int64_t>(blocks.size());
}

} // namespace neuroshard::runtime
