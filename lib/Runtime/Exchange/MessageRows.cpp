//===- MessageRows.cpp - Rows of a block in a message ---------------------===//

#include "MessageRows.h"

namespace neuroshard::runtime {

void RowsOfMessage::addPacking(const float *from, std::byte *to,
                               WireFormat format,
                               std::vector<RowMove> &moves) const {
  RowMove &move = moves.emplace_back();
  move.source = {reinterpret_cast<const std::byte *>(from + begin), stride};
  move.target = {to + messageBegin * valueBytes(format), messageStride};
  move.targetFormat = format;
  move.rows = rows;
  move.width = width;
}

void RowsOfMessage::addUnpacking(const std::byte *from, float *to,
                                 WireFormat format,
                                 std::vector<RowMove> &moves) const {
  RowMove &move = moves.emplace_back();
  move.source = {from + messageBegin * valueBytes(format), messageStride};
  move.sourceFormat = format;
  move.target = {reinterpret_cast<std::byte *>(to + begin), stride};
  move.rows = rows;
  move.width = width;
}

std::vector<RowsOfMessage> directRows(const StreamSet &set, int64_t rank,
                                      int64_t batch,
                                      const std::vector<int64_t> &idsOfStream,
                                      WireFormat format) {
  auto idsOf = [&](size_t stream) { return idsOfStream[stream]; };
  Block block = makeDirectBlock(set, rank, batch, WireFormat::F32, idsOf);
  if (!isScaled(format))
    return {{0, block.size, 0, block.size, 1, block.size}};
  Block message = makeDirectBlock(set, rank, batch, format, idsOf);
  std::vector<RowsOfMessage> rows;
  for (size_t e = 0; e < set.entries.size(); ++e) {
    const EntryLayout &entry = set.entries[e];
    if (!entry.relayed && entry.readers.contains(rank))
      rows.push_back(
          {block.begin[e], block.stride[e], message.begin[e], message.stride[e],
           entry.pooled ? batch : idsOf(static_cast<size_t>(entry.stream)),
           entry.cols.size()});
  }
  return rows;
}

} // namespace neuroshard::runtime
