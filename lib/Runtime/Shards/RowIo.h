//===- RowIo.h - Many small reads and writes of a file ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_ROWIO_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_ROWIO_H

#include "CacheIndex.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <sys/uio.h>

namespace neuroshard::runtime {

enum class IoDirection { Read, Write };

/// Bytes of a file that lie in up to three places in memory.
struct FileRange {
  int64_t offset = 0;
  int64_t bytes = 0;
  std::array<iovec, 3> parts{};
  int numParts = 0;
};

/// Reads many ranges at a time, by io_uring, or with threads where the system
/// has none. Writes one range after the other, since a file has one writer at a
/// time, but reads the pages that they change a part of before, all at a time.
class RowIo {
public:
  RowIo();
  ~RowIo();
  RowIo(const RowIo &) = delete;
  RowIo &operator=(const RowIo &) = delete;

  /// Ranges must not overlap. Waits for all. Throws a RuntimeError if the
  /// system reports an error, or the file ends.
  void run(int file, IoDirection direction, std::span<FileRange> ranges);

private:
  struct Ring;

  void read(int file, std::span<FileRange> ranges);
  void touchPages(int file, std::span<const FileRange> ranges);

  std::unique_ptr<Ring> ring;
  std::unique_ptr<ThreadPool> threads; ///< null if the ring works.
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_ROWIO_H
