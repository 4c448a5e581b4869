//===- RowMemory.h - The rows of a shard in host memory ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_ROWMEMORY_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_ROWMEMORY_H

#include "Host/PageBlock.h"
#include "RowStore.h"

namespace neuroshard::runtime {

class RowMemory : public RowStore {
public:
  /// Zeros. Throws a RuntimeError if there is no room.
  RowMemory(int64_t rows, int64_t recordBytes)
      : RowStore(rows, recordBytes), memory(bytes()) {}

  std::byte *data() const override { return memory.data(); }
  void transfer(RowIo &io, IoDirection direction,
                std::span<const CachedRow> rows,
                std::span<const RecordPart> parts) const override;

private:
  PageBlock memory;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_ROWMEMORY_H
