//===- MessageLayout.cpp - Rows of values in a message --------------------===//

#include "neuroshard/Artifact/MessageLayout.h"

namespace neuroshard {

Block makeDirectBlock(
    const StreamSet &set, int64_t rank, int64_t batch, WireFormat format,
    const std::function<int64_t(size_t stream)> &idsOfStream) {
  const int64_t scale = scaleWidth(format);
  auto isHere = [&](const EntryLayout &entry) {
    return !entry.relayed && entry.readers.contains(rank);
  };
  int64_t width = 0;
  for (const EntryLayout &entry : set.entries)
    if (entry.pooled && isHere(entry))
      width += entry.cols.size() + scale;
  Block block;
  block.size = batch * width;
  int64_t column = 0;
  for (const EntryLayout &entry : set.entries) {
    if (!isHere(entry)) {
      block.begin.push_back(0);
      block.stride.push_back(0);
    } else if (entry.pooled) {
      block.begin.push_back(column);
      block.stride.push_back(width);
      column += entry.cols.size() + scale;
    } else {
      block.begin.push_back(block.size);
      block.stride.push_back(entry.cols.size() + scale);
      block.size +=
          idsOfStream(static_cast<size_t>(entry.stream)) * block.stride.back();
    }
  }
  block.directSize = block.size;
  return block;
}

Block makeBlock(const StreamSet &set, int64_t rank, int64_t batch,
                const std::function<int64_t(size_t stream)> &idsOfStream) {
  Block block = makeDirectBlock(set, rank, batch, WireFormat::F32, idsOfStream);
  for (size_t e = 0; e < set.entries.size(); ++e)
    if (set.entries[e].relayed) {
      block.begin[e] = block.directSize + set.entries[e].pooledColumn;
      block.stride[e] = set.relayedWidth;
    }
  block.size += batch * set.relayedWidth;
  return block;
}

} // namespace neuroshard
