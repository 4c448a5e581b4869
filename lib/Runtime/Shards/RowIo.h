//===- RowIo.h - Many small reads and writes of a file ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_ROWIO_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_ROWIO_H

#include "Host/PageBlock.h"
#include "neuroshard/Model/CacheBuffers.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <array>
#include <cstdint>
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

/// Moves many ranges at a time, by io_uring, or with threads where the system
/// has none.
class RowIo {
public:
  RowIo();
  ~RowIo();
  RowIo(const RowIo &) = delete;
  RowIo &operator=(const RowIo &) = delete;

  // Ranges must not overlap. These wait for all. They throw a RuntimeError if
  // the system reports an error, or the file ends.
  void run(int file, IoDirection direction, std::span<FileRange> ranges);
  /// Writes by way of the system's pages, where a file has one writer at a
  /// time: one range after the other, but pages that a range changes a part of
  /// are read before, all at a time.
  void writePages(int file, std::span<FileRange> ranges);

  /// Memory for what is moved past the system's pages, aligned to one.
  static constexpr int64_t kStagingBytes = kFileStagingBytes;
  std::span<std::byte> staging();

private:
  struct Ring;

  void touchPages(int file, std::span<const FileRange> ranges);

  std::unique_ptr<Ring> ring;
  std::unique_ptr<ThreadPool> threads; ///< null if the ring works.
  PageBlock stagingMemory;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_ROWIO_H
