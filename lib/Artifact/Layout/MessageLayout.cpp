//===- MessageLayout.cpp - Rows of values in a message --------------------===//

#include "neuroshard/Artifact/MessageLayout.h"

namespace neuroshard {

Block makeBlock(const StreamSet &set, int64_t batch,
                const std::function<int64_t(size_t stream)> &idsOfStream) {
  Block block;
  block.size = batch * set.pooledWidth;
  for (const EntryLayout &entry : set.entries) {
    if (entry.pooled) {
      block.begin.push_back(entry.pooledColumn);
      block.stride.push_back(entry.relayed ? set.relayedWidth
                                           : set.pooledWidth);
      continue;
    }
    block.begin.push_back(block.size);
    block.stride.push_back(entry.cols.size());
    block.size +=
        idsOfStream(static_cast<size_t>(entry.stream)) * entry.cols.size();
  }
  block.directSize = block.size;
  for (size_t e = 0; e < set.entries.size(); ++e)
    if (set.entries[e].relayed)
      block.begin[e] += block.directSize;
  block.size += batch * set.relayedWidth;
  return block;
}

} // namespace neuroshard
