//===- RowFile.h - The rows of a shard in a file ----------------*- C++ -*-===//
//
// A row is a record: its weights, then each of its optimizer states, padded as
// Model/RowLayout.h and Model/RowCache.h say. The file has no name: it goes
// when it is closed, however the process ends.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_ROWFILE_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_ROWFILE_H

#include "CacheIndex.h"
#include "RowIo.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace neuroshard::runtime {

/// One of the arrays that the record of a row is made of.
struct RecordPart {
  int64_t offset; ///< in the record.
  int64_t bytes;
  /// The array in memory, whose row at place p is at first + p * bytes.
  std::byte *first;
};

class RowFile {
public:
  /// Zeros, which take their room on the disk now. Throws a RuntimeError that
  /// names `shard` if the directory cannot hold them.
  RowFile(const std::string &directory, const std::string &shard, int64_t rows,
          int64_t recordBytes);
  ~RowFile();
  RowFile(const RowFile &) = delete;
  RowFile &operator=(const RowFile &) = delete;

  int64_t recordBytes() const { return stride; }
  int64_t bytes() const { return numRows * stride; }
  /// The whole file, mapped: what is read and written here and by rows is the
  /// same.
  std::byte *data() const { return mapping; }

  /// Copies rows between the file and arrays in memory.
  void transfer(RowIo &io, IoDirection direction,
                std::span<const CachedRow> rows,
                std::span<const RecordPart> parts) const;

private:
  bool isResident(int64_t row) const;
  void copy(IoDirection direction, const CachedRow &row, std::byte *record,
            std::span<const RecordPart> parts) const;
  void transferPages(RowIo &io, IoDirection direction,
                     std::span<const CachedRow> rows,
                     std::span<const RecordPart> parts) const;
  void transferDirectly(RowIo &io, IoDirection direction,
                        std::vector<CachedRow> rows,
                        std::span<const RecordPart> parts) const;

  int64_t numRows;
  int64_t stride;
  int file = -1;
  int directFile = -1;    ///< past the system's pages; -1 if it cannot.
  int64_t blockBytes = 0; ///< of what is moved by it.
  std::byte *mapping = nullptr;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_ROWFILE_H
