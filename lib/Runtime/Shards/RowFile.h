//===- RowFile.h - The rows of a shard in a file ----------------*- C++ -*-===//
//
// The file has no name: it goes when it is closed, however the process ends.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_ROWFILE_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_ROWFILE_H

#include "RowStore.h"

#include <string>
#include <vector>

namespace neuroshard::runtime {

class RowFile : public RowStore {
public:
  /// Zeros, which take their room on the disk now. Throws a RuntimeError that
  /// names `shard` if the directory cannot hold them.
  RowFile(const std::string &directory, const std::string &shard, int64_t rows,
          int64_t recordBytes);
  ~RowFile() override;

  /// The whole file, mapped.
  std::byte *data() const override { return mapping; }
  void transfer(RowIo &io, IoDirection direction,
                std::span<const CachedRow> rows,
                std::span<const RecordPart> parts) const override;

private:
  bool isResident(int64_t row) const;
  void transferPages(RowIo &io, IoDirection direction,
                     std::span<const CachedRow> rows,
                     std::span<const RecordPart> parts) const;
  void transferDirectly(RowIo &io, IoDirection direction,
                        std::vector<CachedRow> rows,
                        std::span<const RecordPart> parts) const;

  int file = -1;
  int directFile = -1;    ///< past the system's pages; -1 if it cannot.
  int64_t blockBytes = 0; ///< of what is moved by it.
  std::byte *mapping = nullptr;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_ROWFILE_H
