//===- RowStore.h - The rows of a shard below device memory -----*- C++ -*-===//
//
// A row is a record: its weights, then each of its optimizer states, padded as
// Model/RowLayout.h and Model/RowCache.h say.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_ROWSTORE_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_ROWSTORE_H

#include "CacheIndex.h"
#include "RowIo.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace neuroshard::runtime {

/// One of the arrays that the record of a row is made of.
struct RecordPart {
  int64_t offset; ///< in the record.
  int64_t bytes;
  /// The array in memory of the host, whose row at place p is at first + p *
  /// bytes.
  std::byte *first;
};

class RowStore {
public:
  RowStore(int64_t rows, int64_t recordBytes)
      : numRows(rows), stride(recordBytes) {}
  virtual ~RowStore() = default;
  RowStore(const RowStore &) = delete;
  RowStore &operator=(const RowStore &) = delete;

  int64_t recordBytes() const { return stride; }
  int64_t bytes() const { return numRows * stride; }
  /// All rows: what is read and written here and by rows is the same.
  virtual std::byte *data() const = 0;

  /// Copies rows between the store and arrays in memory.
  virtual void transfer(RowIo &io, IoDirection direction,
                        std::span<const CachedRow> rows,
                        std::span<const RecordPart> parts) const = 0;

protected:
  const int64_t numRows;
  const int64_t stride;
};

/// Copies a row between its record and the arrays.
inline void copyRecord(IoDirection direction, const CachedRow &row,
                       std::byte *record, std::span<const RecordPart> parts) {
  for (const RecordPart &part : parts) {
    std::byte *cached = part.first + row.place * part.bytes;
    std::byte *stored = record + part.offset;
    bool reads = direction == IoDirection::Read;
    std::memcpy(reads ? cached : stored, reads ? stored : cached,
                static_cast<size_t>(part.bytes));
  }
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_ROWSTORE_H
