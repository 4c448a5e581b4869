//===- RowMemory.cpp - The rows of a shard in host memory -----------------===//

#include "RowMemory.h"

namespace neuroshard::runtime {

void RowMemory::transfer(RowIo &, IoDirection direction,
                         std::span<const CachedRow> rows,
                         std::span<const RecordPart> parts) const {
  // Rows lie anywhere: their first lines are loaded while others are copied.
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kAhead < rows.size())
      __builtin_prefetch(data() + rows[i + kAhead].row * stride);
    copyRecord(direction, rows[i], data() + rows[i].row * stride, parts);
  }
}

} // namespace neuroshard::runtime
